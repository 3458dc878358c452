"""T1: what gateways tell of an activation - id, request, first byte - is in its record, or stays absent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cluster import NAMESPACE, SECONDS, Cluster, running
from noctaya_api.gateway_activations import ListedActivation
from noctaya_api.process.metrics import render
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from noctaya_operator.activation_poller import AFTER_READY, activations_url
from noctaya_operator.gateway_activations import told_of
from noctaya_operator.kinds import LLM_SERVICES
from noctaya_operator.kube.resources import EVENTS, PODS

FIRST, SECOND = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
ADDRESS, OTHER = "10.0.0.9", "fd00::9"
NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def activation(activation_id: str = FIRST, **seconds: float) -> ListedActivation:
    times = {name: NOW + timedelta(seconds=value) for name, value in seconds.items()}
    return ListedActivation.model_validate({"id": activation_id, **times}, by_name=True)


def record(**seconds: float) -> ActivationRecord:
    times = {name: stamp(NOW + timedelta(seconds=value)) for name, value in seconds.items()}
    return ActivationRecord(outcome=ActivationOutcome.IN_PROGRESS, **times)


def test_the_gateway_that_was_asked_first_gives_the_id() -> None:
    told = told_of(
        record(requested=1.0),
        [
            activation(SECOND, requested=0.9, told=1.2, first_byte=9.5),
            activation(FIRST, requested=0.5, told=1.4, first_byte=9.6),
        ],
    )
    assert told is not None
    assert (told.id, told.requested) == (FIRST, "2026-11-30T08:00:00.500Z")
    assert (told.keda_told, told.first_byte) == ("2026-11-30T08:00:01.200Z", "2026-11-30T08:00:09.500Z")


def test_of_two_in_the_same_millisecond_the_lower_id_is_taken_in_any_order() -> None:
    both = [activation(SECOND, requested=0.5001), activation(FIRST, requested=0.5004)]
    for order in (both, both[::-1]):
        told = told_of(record(requested=1.0), order)
        assert told is not None
        assert told.id == FIRST


@pytest.mark.parametrize(
    "other",
    [
        activation(requested=-90.0, ended=-30.0, first_byte=-29.0),
        activation(requested=40.0),
    ],
)
def test_an_activation_that_was_over_before_or_began_afterwards_is_another_one(
    other: ListedActivation,
) -> None:
    assert told_of(record(requested=1.0, ready=20.0), [other]) is None


def answers(cluster: Cluster, address: str = ADDRESS, *, clock: float = 0.0, **given: Any) -> None:
    """A gateway tells of one activation; `clock` seconds are what its clock is ahead."""
    ahead = timedelta(seconds=clock)
    said = {
        name: stamp(value + ahead) if isinstance(value, datetime) else value for name, value in given.items()
    }

    def body() -> bytes:
        told = {"now": stamp(cluster.now() + ahead), "activations": [{"id": FIRST, **said}]}
        return json.dumps(told).encode()

    cluster.progress[activations_url(address)] = body


def condition(kind: str, since: datetime) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": since.strftime(SECONDS)}


async def activated(cluster: Cluster) -> None:
    await cluster.pod(running(ready=True))
    await cluster.scale(1, ready=1)


@pytest.mark.looptime
async def test_t1_the_record_gets_its_id_and_the_event_names_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.gateway_pod(address=ADDRESS)
        requested = cluster.now()
        answers(cluster, requested=requested, told=requested + timedelta(seconds=0.02))
        await cluster.scale(1)
        found = cluster.status()["lastActivation"]
        assert (found["id"], found["requested"]) == (FIRST, stamp(requested))
        assert found["durations"]["demand"] == "20ms"
        await activated(cluster)
        assert "firstByte" not in cluster.status()["lastActivation"]
        (note,) = (
            event["note"] for event in cluster.server.all(EVENTS, NAMESPACE) if event["reason"] == "Activated"
        )
        assert FIRST in note
        scraped = render(cluster.registry, "application/openmetrics-text")[0].decode()
        assert f'# {{trace_id="{FIRST}"}}' in scraped


@pytest.mark.looptime
async def test_t1_a_first_byte_that_comes_after_readiness_is_counted_once() -> None:
    labels = {"namespace": NAMESPACE, "llmservice": "chat", "phase": "first_byte"}
    series = ("noctaya_activation_phase_seconds_count", labels)
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.gateway_pod(address=ADDRESS)
        requested = cluster.now()
        answers(cluster, requested=requested)
        await cluster.scale(1)
        await cluster.pod({"conditions": [condition("Ready", cluster.now())]} | running())
        await cluster.scale(1, ready=1)
        assert cluster.registry.get_sample_value(*series) is None
        ready = datetime.fromisoformat(cluster.status()["lastActivation"]["ready"])
        answers(cluster, requested=requested, ended=ready, firstByte=ready + timedelta(seconds=2))
        await cluster.settle(20)
        found = cluster.status()["lastActivation"]
        assert found["durations"]["firstByte"] == "2s"
        assert found["firstByte"] == stamp(ready + timedelta(seconds=2))
        assert cluster.registry.get_sample_value(*series) == 1
        assert sum(reason == "Activated" for _, reason, _ in cluster.events()) == 1
        cluster.asked.clear()
        cluster.forget_requests()
        await cluster.settle(300)
        assert cluster.registry.get_sample_value(*series) == 1
        assert not cluster.asked
        assert not cluster.writes()


@pytest.mark.looptime
async def test_t1_without_an_answer_nothing_is_claimed_and_no_pass_waits() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.gateway_pod(address=OTHER)
        await cluster.scale(1)
        await activated(cluster)
        found = cluster.status()["lastActivation"]
        assert found["outcome"] == "Succeeded"
        assert not {"id", "kedaTold", "firstByte"} & set(found)
        assert set(cluster.asked) == {f"http://[{OTHER}]:8080/noctaya/activations"}
        await cluster.settle(AFTER_READY + 20)
        cluster.asked.clear()
        cluster.forget_requests()
        await cluster.settle(300)
        assert not cluster.asked
        assert not cluster.writes()


@pytest.mark.looptime
async def test_t1_a_gateway_whose_clock_is_wrong_is_put_right_and_causes_no_writes() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.gateway_pod(address=ADDRESS)
        requested = cluster.now()
        answers(cluster, clock=-400.0, requested=requested)
        await cluster.scale(1)
        found = datetime.fromisoformat(cluster.status()["lastActivation"]["requested"])
        assert abs((found - requested).total_seconds()) < 10
        cluster.forget_requests()
        await cluster.settle(300)
        assert len(cluster.asked) > 15
        assert not cluster.writes()


@pytest.mark.looptime
async def test_t1_former_activations_stay_for_explain_but_not_for_ever() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        begun = []
        for _ in range(7):
            await cluster.scale(1)
            await activated(cluster)
            begun.append(cluster.status()["lastActivation"]["requested"])
            await cluster.scale(0)
            cluster.server.remove(PODS, NAMESPACE, "chat-abc")
            await cluster.settle()
        found = cluster.status()
        assert found["lastActivation"]["requested"] == begun[-1]
        assert [each["requested"] for each in found["recentActivations"]] == begun[-2:-6:-1]
        assert all("ended" in each for each in found["recentActivations"])
        await cluster.change(scaling={"max": 2})
        assert cluster.status()["recentActivations"] == found["recentActivations"]
        cluster.server.remove(LLM_SERVICES, NAMESPACE, "chat")
        await cluster.settle()
