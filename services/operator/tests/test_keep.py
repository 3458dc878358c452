"""The annotation `keep`: awake raises the autoscaler's minimum, asleep pauses it at zero, both end."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from cluster import NAMESPACE, Cluster, running
from noctaya_api.keep import time_text
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, PODS

pytestmark = pytest.mark.looptime

KEEP = "serving.noctaya.io/keep"
PAUSED = "autoscaling.keda.sh/paused-replicas"


async def keep(cluster: Cluster, text: str | None, name: str = "chat") -> None:
    body = {"metadata": {"annotations": {KEEP: text}}}
    await cluster.user.patch_merge(LLM_SERVICES, NAMESPACE, name, body)
    await cluster.settle()


def until(cluster: Cluster, seconds: float) -> str:
    return time_text(cluster.now() + timedelta(seconds=seconds))


def minimum(cluster: Cluster) -> int:
    return int(cluster.the(SCALED_OBJECTS, "chat")["spec"]["minReplicaCount"])


def paused(cluster: Cluster) -> str | None:
    annotations = cluster.the(SCALED_OBJECTS, "chat")["metadata"].get("annotations") or {}
    found: str | None = annotations.get(PAUSED)
    return found


def gateway_told(cluster: Cluster, name: str) -> Any:
    annotations = cluster.the(PODS, "chat-gateway-x")["metadata"].get("annotations") or {}
    return annotations.get(f"serving.noctaya.io/{name}")


def keep_events(cluster: Cluster) -> list[str]:
    return [reason for _, reason, action in cluster.events() if action == "ObserveKeep"]


async def test_awake_raises_the_minimum_and_is_kept_once_the_replicas_are_ready() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"max": 3})
        await keep(cluster, "awake 2")
        assert minimum(cluster) == 2
        assert paused(cluster) is None
        assert cluster.status()["keep"] == {"state": "Awake", "replicas": 2}
        assert cluster.condition("Kept") == ("False", "Waking")
        await cluster.scale(2, ready=1)
        assert cluster.message("Kept") == "1 of at least 2 replicas are ready, kept"
        await cluster.scale(2, ready=2)
        assert cluster.condition("Kept") == ("True", "Awake")
        assert cluster.condition("Ready") == ("True", "Available")


async def test_without_the_annotation_demand_decides_again_and_nothing_is_left_of_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await keep(cluster, "awake")
        await keep(cluster, None)
        assert minimum(cluster) == 0
        assert "keep" not in cluster.status()
        assert cluster.condition("Kept") == ("", "")
        assert keep_events(cluster) == ["KeptAwake", "KeepEnded"]


async def test_the_minimum_of_the_spec_and_its_maximum_bound_what_is_kept() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"min": 2, "max": 3})
        await keep(cluster, "awake 1")
        assert minimum(cluster) == 2
        await keep(cluster, "awake 9")
        assert minimum(cluster) == 3
        await cluster.scale(3, ready=3)
        assert cluster.condition("Kept") == ("True", "Awake")
        assert "9 are asked for, and scaling.max is 3" in cluster.message("Kept")


async def test_a_time_ends_it_without_a_change_of_anything() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await keep(cluster, f"awake until {until(cluster, 7200)}")
        cluster.forget_requests()
        await cluster.settle(7150)
        assert cluster.writes() == []
        assert minimum(cluster) == 1
        await cluster.settle(60)
        assert minimum(cluster) == 0
        assert cluster.condition("Kept") == ("", "")
        cluster.forget_requests()
        await cluster.settle(4000)
        assert cluster.writes() == []


async def test_what_ended_while_no_operator_ran_is_over_when_one_comes_back() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await keep(cluster, f"asleep until {until(cluster, 60)}")
        assert paused(cluster) == "0"
        await cluster.stop()
        await cluster.settle(120)
        await cluster.restart()
        assert paused(cluster) is None
        assert cluster.condition("Ready") == ("False", "ScaledToZero")


async def test_asleep_pauses_the_autoscaler_at_zero_whatever_the_spec_wants() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"min": 1})
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        await keep(cluster, "asleep")
        assert paused(cluster) == "0"
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")
        assert cluster.condition("Kept") == ("False", "FallingAsleep")
        assert cluster.message("Kept") == "1 replica is still to be stopped"


async def test_asleep_is_true_only_once_the_last_pod_is_gone() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        await keep(cluster, "asleep")
        going = {**cluster.the(PODS, "chat-abc")}
        going["metadata"] = {**going["metadata"], "deletionTimestamp": time_text(cluster.now())}
        cluster.server.put(going)
        await cluster.scale(0)
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.condition("Kept") == ("False", "FallingAsleep")
        assert cluster.message("Kept") == "1 Pod is finishing requests"
        cluster.server.remove(PODS, NAMESPACE, "chat-abc")
        await cluster.settle()
        assert cluster.condition("Kept") == ("True", "Asleep")
        assert cluster.condition("Ready") == ("False", "Asleep")
        assert cluster.condition("Degraded") == ("False", "Inactive")


async def test_asleep_waits_for_the_deployment_to_see_its_pods_gone() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        await keep(cluster, "asleep")
        cluster.server.remove(PODS, NAMESPACE, "chat-abc")
        await cluster.scale(0, ready=1)
        assert cluster.status()["phase"] == "Ready"
        assert cluster.condition("Kept") == ("False", "FallingAsleep")
        await cluster.scale(0)
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.condition("Kept") == ("True", "Asleep")


async def test_gateways_are_told_at_once_that_a_service_sleeps_and_that_it_does_no_more() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.gateway_pod()
        await keep(cluster, f"asleep until {until(cluster, 3600)}")
        notice = json.loads(gateway_told(cluster, "prewarming"))
        assert notice == {
            "state": "asleep",
            "message": f"the service is put to sleep until {notice['readyAt']}",
            "readyAt": until(cluster, 3595),
        }
        assert gateway_told(cluster, "activation-failure") == notice["message"]
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []
        await keep(cluster, None)
        assert gateway_told(cluster, "prewarming") is None
        assert gateway_told(cluster, "activation-failure") is None


async def test_a_sleep_that_ends_before_those_who_wait_give_up_does_not_end_their_wait() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"activationTimeout": "2m"})
        await cluster.gateway_pod()
        await keep(cluster, f"asleep until {until(cluster, 60)}")
        assert json.loads(gateway_told(cluster, "prewarming"))["state"] == "asleep"
        assert gateway_told(cluster, "activation-failure") is None


async def test_weights_come_before_a_wish() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True})
        await keep(cluster, "awake")
        assert (paused(cluster), minimum(cluster)) == ("0", 1)
        assert cluster.condition("Kept") == ("False", "Waking")
        assert "none is started before the weights are there" in cluster.message("Kept")
        await cluster.job_is("Complete")
        assert (paused(cluster), minimum(cluster)) == (None, 1)


async def test_the_end_of_a_download_does_not_wake_who_sleeps() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True})
        await keep(cluster, "asleep")
        assert cluster.status()["phase"] == "Prewarming"
        await cluster.job_is("Complete")
        assert paused(cluster) == "0"
        assert cluster.condition("Ready") == ("False", "Asleep")


@pytest.mark.parametrize("text", ["", "yes", "awake 0", "awake until tomorrow", "asleep 2", "x" * 5000])
async def test_what_cannot_be_read_changes_nothing_and_is_said(text: str) -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await keep(cluster, text)
        assert (paused(cluster), minimum(cluster)) == (None, 0)
        assert cluster.condition("Kept") == ("False", "InvalidKeep")
        assert "annotation keep changes nothing" in cluster.message("Kept")
        assert cluster.condition("Degraded") == ("False", "Inactive")
        assert keep_events(cluster) == ["InvalidKeep"]


async def test_a_service_asleep_that_demand_wants_begins_no_activation() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await keep(cluster, "asleep")
        said: Object = {"conditions": [{"type": "Active", "status": "True"}]}
        cluster.server.set_status(SCALED_OBJECTS, NAMESPACE, "chat", said)
        await cluster.settle()
        assert "lastActivation" not in cluster.status()


async def test_replicas_are_never_written_for_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"max": 4})
        cluster.forget_requests()
        for text in ("awake 3", "asleep", "awake", None):
            await keep(cluster, text)
        assert DEPLOYMENTS not in {each.resource for each in cluster.writes()}
        assert cluster.the_deployment()["spec"]["replicas"] == 0
