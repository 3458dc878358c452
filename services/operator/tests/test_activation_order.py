"""T1: a timeline never runs backwards, whatever the clocks say and in whatever order the facts arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cluster import pod
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.activation_timeline import phases, spans
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord
from noctaya_operator.activation_order import BEFORE_THE_POD, OF_THE_POD, in_order, ordered
from noctaya_operator.activation_record import Seen, follow_activation
from noctaya_operator.kube.objects import Object

NOW = datetime(2026, 11, 30, 13, 4, tzinfo=UTC)


def stamp(seconds: int) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def moments_of(record: ActivationRecord) -> list[datetime]:
    times = [getattr(record, field) for field in (*BEFORE_THE_POD, *OF_THE_POD)]
    return [datetime.fromisoformat(time) for time in times if time]


def seen(*pods: Object, desired: int = 1, ready: int = 0) -> Seen:
    return Seen(demanded=True, desired=desired, ready=ready, pods=pods, pulled={}, problem=None)


def test_t1_what_the_operator_saw_late_was_before_what_came_of_it() -> None:
    record = follow_activation(None, seen(desired=0), NOW + timedelta(seconds=3.5))
    scheduled = pod(
        {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(3)}]},
        creationTimestamp=stamp(3),
    )
    record = follow_activation(record, seen(scheduled), NOW + timedelta(seconds=4.025))
    assert record is not None
    assert record.requested == "2026-11-30T13:04:03.500Z"
    assert record.replicas_written == "2026-11-30T13:04:03.999Z"
    assert record.scheduled == "2026-11-30T13:04:03.999Z"


def test_t1_nobody_was_late_within_the_second_that_kubernetes_tells() -> None:
    told = ["2026-11-30T13:04:03.500Z", "2026-11-30T13:04:03.700Z", "2026-11-30T13:04:03Z"]
    assert [moment and moment.microsecond // 1000 for moment in ordered(told)] == [500, 700, 700]


def test_t1_an_operator_that_came_when_the_pod_was_there_counts_from_the_pod() -> None:
    old = pod({}, creationTimestamp=stamp(-60))
    record = follow_activation(None, seen(old), NOW)
    assert record is not None
    assert record.requested == "2026-11-30T13:03:00.999Z"


@pytest.mark.parametrize("field", ["scheduled", "started", "ready"])
def test_t1_a_clock_that_is_behind_makes_no_negative_phase(field: str) -> None:
    record = ActivationRecord.model_validate(
        {"outcome": "InProgress", "requested": stamp(10), "replicasWritten": stamp(11), field: stamp(2)}
    )
    moments = moments_of(in_order(record))
    assert moments == sorted(moments)


def pods() -> st.SearchStrategy[Object]:
    """Pods of two names, with times of clocks that need not agree."""
    seconds = st.integers(-5, 30)

    def made(
        name: str, created: int, scheduled: int | None, started: int | None, ready: int | None
    ) -> Object:
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": stamp(time)}
            for kind, time in (("PodScheduled", scheduled), ("Ready", ready))
            if time is not None
        ]
        status: dict[str, Any] = {"conditions": conditions}
        if started is not None:
            state = {"running": {"startedAt": stamp(started)}}
            status["containerStatuses"] = [{"name": "serving", "state": state}]
        return pod(status, name=name, creationTimestamp=stamp(created))

    maybe = st.none() | seconds
    return st.builds(made, st.sampled_from(["a", "b"]), seconds, maybe, maybe, maybe)


passes = st.lists(
    st.tuples(
        st.floats(0, 40),
        st.integers(0, 1),
        st.lists(pods(), max_size=2, unique_by=lambda each: each["metadata"]["name"]),
        st.dictionaries(st.sampled_from(["a", "b"]), st.floats(-5, 30), max_size=2),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(passes)
def test_t1_no_timeline_runs_backwards(steps: list[Any]) -> None:
    record = None
    for at, desired, found, pulled, ready in steps:
        times = {name: (NOW + timedelta(seconds=time)).isoformat() for name, time in pulled.items()}
        look = Seen(
            demanded=True,
            desired=desired,
            ready=int(ready and record is not None),
            pods=found,
            pulled=times,
            problem=None,
        )
        record = follow_activation(record, look, NOW + timedelta(seconds=at))
        assert record is not None
        moments = moments_of(record)
        assert moments == sorted(moments)
        assert in_order(record) == record
        assert all(end >= begin for _, begin, end in spans(record))
        spent = dict(phases(record))
        total = spent.pop("total", None)
        if total is not None:
            assert sum(spent.values()) <= total + 1e-6


@given(
    st.lists(st.none() | st.integers(0, 5000).map(lambda ms: ms if ms % 3 else ms // 1000 * 1000), max_size=9)
)
def test_t1_no_moment_is_put_behind_its_own_time(milliseconds: list[int | None]) -> None:
    told = [None if ms is None else (NOW + timedelta(milliseconds=ms)) for ms in milliseconds]
    result = ordered([None if time is None else time.isoformat() for time in told])
    assert [time is None for time in told] == [time is None for time in result]
    for before, after in zip(told, result, strict=True):
        if before is not None and after is not None:
            slack = timedelta(0) if before.microsecond else timedelta(milliseconds=999)
            assert after <= before + slack
