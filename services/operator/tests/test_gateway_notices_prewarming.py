"""Gateways are told that weights are being downloaded, and until when, with few writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from cluster import EPOCH, Cluster, running
from noctaya_operator.gateway_notices import says_the_same
from noctaya_operator.kube.resources import PODS

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
URL = "http://10.0.0.7:8080/progress"
RUNNING = {**running(container="prewarm"), "phase": "Running", "podIP": "10.0.0.7"}


def notice(seconds: float | None = None, message: str = "m", *, state: str | None = None) -> str:
    told = {"message": message} | ({"state": state} if state else {})
    if seconds is not None:
        told["readyAt"] = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(told)


@pytest.mark.parametrize(
    ("known", "wanted", "same"),
    [
        (None, None, True),
        (None, notice(), False),
        (notice(), None, False),
        (notice(), notice(), True),
        (notice(60), notice(74), True),
        (notice(60), notice(80), False),
        (notice(1000), notice(1190), True),
        (notice(1000), notice(1300), False),
        (notice(1000), notice(700), False),
        (notice(), notice(60), False),
        (notice(60), notice(), True),
        (notice(message="m"), notice(message="n"), False),
        (notice(60, state="failed"), notice(60), False),
        (notice(60), notice(60, state="failed"), False),
        (notice(60, state="failed"), notice(61, state="failed"), True),
        (notice(60, state="asleep"), notice(61, state="asleep"), False),
        ("not JSON", notice(), False),
        ("[]", notice(), False),
    ],
)
def test_an_estimate_is_told_anew_only_when_it_changed_by_much(
    known: str | None, wanted: str | None, same: bool
) -> None:
    assert says_the_same(known, wanted, now=NOW) is same


def told(cluster: Cluster) -> dict[str, str]:
    annotations = cluster.the(PODS, "chat-gateway-x")["metadata"].get("annotations") or {}
    found: dict[str, str] = json.loads(annotations.get("serving.noctaya.io/prewarming") or "{}")
    return found


@pytest.mark.looptime
async def test_a_download_is_told_with_its_end_and_taken_back_after_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True})
        await cluster.gateway_pod()
        assert told(cluster) == {"message": "the weights of the model are being downloaded"}
        cluster.progress[URL] = json.dumps({"bytesTotal": 2**30, "etaSeconds": 600}).encode()
        began = cluster.now()
        await cluster.prewarm_pod(RUNNING)
        assert told(cluster)["message"].endswith("(1.0 GiB)")
        ready = datetime.fromisoformat(told(cluster)["readyAt"])
        assert 600 <= (ready - began).total_seconds() <= 606
        await cluster.job_is("Complete")
        assert told(cluster) == {}


@pytest.mark.looptime
async def test_o9_an_estimate_that_holds_is_written_once() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True})
        await cluster.gateway_pod()
        end = EPOCH + timedelta(seconds=600)
        await cluster.prewarm_pod(RUNNING)
        cluster.forget_requests()
        for _ in range(30):
            left = int((end - cluster.now()).total_seconds())
            cluster.progress[URL] = json.dumps({"bytesDone": 600 - left, "etaSeconds": left}).encode()
            await cluster.settle(10)
        patches = [each for each in cluster.writes() if each.resource == PODS]
        assert len(patches) == 1


@pytest.mark.looptime
async def test_g9_a_download_that_failed_dooms_an_activation_and_is_told_until_it_is_tried_again() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "strategy": "SharedPVC"})
        await cluster.gateway_pod()
        tried = timedelta(seconds=600)
        began = cluster.now().replace(microsecond=0)
        await cluster.settle(tried.total_seconds())
        await cluster.job_is("Failed", message="BackoffLimitExceeded", at=began, ended=began + tried)
        assert told(cluster) == {}
        await cluster.settle(70)
        annotations = cluster.the(PODS, "chat-gateway-x")["metadata"]["annotations"]
        why = annotations["serving.noctaya.io/activation-failure"]
        assert "could not be downloaded" in why
        again = (began + 2 * tried).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert told(cluster) == {"state": "failed", "message": why, "readyAt": again}
        cluster.forget_requests()
        await cluster.settle(300)
        assert cluster.writes() == []
        await cluster.settle(300)
        assert told(cluster) == {"message": "the weights of the model are being downloaded"}
        metadata = cluster.the(PODS, "chat-gateway-x")["metadata"]
        assert "serving.noctaya.io/activation-failure" not in metadata["annotations"]
