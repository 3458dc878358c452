"""T1: the timeline of an activation, step by step and through the operator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cluster import NAMESPACE, Cluster, pod, running
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from noctaya_operator.activation_record import Seen, follow_activation
from noctaya_operator.kinds import LLM_SERVICES
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import PODS as POD

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def seen(**given: Any) -> Seen:
    values: dict[str, Any] = {
        "demanded": False,
        "desired": 0,
        "ready": 0,
        "pods": (),
        "pulled": {},
        "problem": None,
    }
    return Seen(**{**values, **given})


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stamp(seconds: int) -> str:
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def starting(**conditions: str) -> Object:
    return {
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": time} for kind, time in conditions.items()
        ]
    }


def test_t1_the_whole_timeline() -> None:
    record = follow_activation(None, seen(demanded=True), at(0))
    record = follow_activation(record, seen(demanded=True, desired=1), at(0.25))
    status = starting(PodScheduled=stamp(2))
    record = follow_activation(record, seen(demanded=True, desired=1, pods=[pod(status)]), at(2.1))
    waited = {
        "name": "wait-for-prewarm",
        "state": {"terminated": {"exitCode": 0, "finishedAt": stamp(5)}},
    }
    status |= running() | {"initContainerStatuses": [waited]}
    status["containerStatuses"][0]["state"]["running"]["startedAt"] = stamp(12)
    now = seen(demanded=True, desired=1, pods=[pod(status)], pulled={"chat-abc": stamp(11)})
    record = follow_activation(record, now, at(12.3))
    assert record is not None
    assert record.outcome is ActivationOutcome.IN_PROGRESS
    status |= starting(PodScheduled=stamp(2), Ready=stamp(70))
    record = follow_activation(record, seen(demanded=True, desired=1, ready=1, pods=[pod(status)]), at(70.4))
    assert record is not None
    assert record.manifest() == {
        "outcome": "Succeeded",
        "pod": "chat-abc",
        "requested": "2026-11-30T08:00:00.000Z",
        "replicasWritten": "2026-11-30T08:00:00.250Z",
        "scheduled": "2026-11-30T08:00:02Z",
        "weightsPresent": "2026-11-30T08:00:05Z",
        "imagesPulled": "2026-11-30T08:00:11Z",
        "started": "2026-11-30T08:00:12Z",
        "ready": "2026-11-30T08:01:10Z",
        "durations": {
            "autoscaling": "250ms",
            "scheduling": "1.75s",
            "weights": "3s",
            "imagePull": "6s",
            "start": "1s",
            "load": "58s",
            "total": "1m10s",
        },
    }


@pytest.mark.parametrize(("made", "scheduled"), [(1, True), (20, False)])
def test_t1_a_pod_that_is_seen_after_the_success_completes_it_unless_it_is_a_later_one(
    made: int, scheduled: bool
) -> None:
    record = follow_activation(None, seen(demanded=True), at(0))
    record = follow_activation(record, seen(demanded=True, desired=1, ready=1), at(9))
    assert record is not None
    assert (record.outcome, record.scheduled) == (ActivationOutcome.SUCCEEDED, None)
    late = pod(starting(PodScheduled=stamp(made)))
    late["metadata"]["creationTimestamp"] = stamp(made)
    record = follow_activation(record, seen(demanded=True, desired=1, ready=1, pods=[late]), at(30))
    assert record is not None
    assert (record.scheduled is not None) is scheduled


def test_t1_a_finished_record_stays_until_the_service_was_at_zero() -> None:
    done = ActivationRecord(outcome=ActivationOutcome.SUCCEEDED, requested=stamp(0), ready=stamp(9))
    assert follow_activation(done, seen(desired=3, ready=2), at(100)) == done
    ended = follow_activation(done, seen(), at(200))
    assert ended is not None
    assert (ended.outcome, ended.ended) == (ActivationOutcome.SUCCEEDED, "2026-11-30T08:03:20.000Z")
    assert follow_activation(ended, seen(), at(300)) == ended
    again = follow_activation(ended, seen(desired=1), at(400))
    assert again is not None
    assert again.requested == "2026-11-30T08:06:40.000Z"
    assert again.ended is None


def test_t1_an_activation_that_was_given_up_has_failed() -> None:
    record = follow_activation(None, seen(desired=1, problem="no image"), at(0))
    assert record is not None
    assert record.message == "no image"
    record = follow_activation(record, seen(), at(60))
    assert record is not None
    assert record.outcome is ActivationOutcome.FAILED


def test_t1_a_backend_that_was_there_before_was_not_activated() -> None:
    assert follow_activation(None, seen(desired=1, ready=1), NOW) is None
    assert follow_activation(None, seen(), NOW) is None


def test_t1_an_activation_that_was_over_before_anybody_looked_again_has_its_timeline() -> None:
    ready = pod(starting(PodScheduled=stamp(2), Ready=stamp(4)), creationTimestamp=stamp(1))
    record = follow_activation(None, seen(desired=1, ready=1, pods=[ready], was_cold=True), at(7))
    assert record is not None
    assert record.outcome is ActivationOutcome.SUCCEEDED
    assert record.requested == "2026-11-30T08:00:01.999Z"
    assert record.ready == stamp(4)


def test_t1_a_replaced_pod_starts_its_part_anew() -> None:
    first = pod(starting(PodScheduled=stamp(2)), name="a", creationTimestamp=stamp(1))
    record = follow_activation(None, seen(desired=1, pods=[first]), at(3))
    second = pod({}, name="b", creationTimestamp=stamp(30))
    record = follow_activation(record, seen(desired=1, pods=[second]), at(31))
    assert record is not None
    assert (record.pod, record.scheduled) == ("b", None)
    both = follow_activation(record, seen(desired=2, pods=[first, second]), at(32))
    assert both is not None
    assert both.pod == "b"


@pytest.mark.looptime
async def test_t1_a_first_activation_between_two_looks_of_the_operator_is_recorded() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        cluster.server.put(pod(running(ready=True)))
        await cluster.scale(1, ready=1)
        assert cluster.status()["phase"] == "Ready"
        assert cluster.status()["lastActivation"]["outcome"] == "Succeeded"


@pytest.mark.looptime
async def test_t1_the_operator_keeps_the_timeline_through_a_restart_and_counts_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        assert "lastActivation" not in cluster.status()
        await cluster.scale(1)
        requested = cluster.status()["lastActivation"]["requested"]
        await cluster.pod(starting(PodScheduled="2026-11-30T08:00:20Z"))
        cluster.server.put(pulled("2026-11-30T08:00:50Z"))
        await cluster.pod(starting(PodScheduled="2026-11-30T08:00:20Z") | running())
        await cluster.restart()
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        record = cluster.status()["lastActivation"]
        assert record["requested"] == requested
        assert record["outcome"] == "Succeeded"
        assert record["imagesPulled"] == "2026-11-30T08:00:50Z"
        assert record["durations"]["load"] == "1m0s"
        assert ("Normal", "Activated", "ObserveActivation") in cluster.events()
        labels = {"namespace": NAMESPACE, "llmservice": "chat", "phase": "load"}
        series = ("noctaya_activation_phase_seconds_count", labels)
        assert cluster.registry.get_sample_value(*series) == 1
        await cluster.scale(0)
        cluster.server.remove(POD, NAMESPACE, "chat-abc")
        await cluster.settle()
        assert "ended" in cluster.status()["lastActivation"]
        cluster.server.remove(LLM_SERVICES, NAMESPACE, "chat")
        await cluster.settle()
        assert cluster.registry.get_sample_value(*series) is None


def pulled(time: str) -> Object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "chat-abc.pulled", "namespace": NAMESPACE},
        "reason": "Pulled",
        "type": "Normal",
        "action": "Pulling",
        "regarding": {"kind": "Pod", "name": "chat-abc", "namespace": NAMESPACE},
        "deprecatedLastTimestamp": time,
    }
