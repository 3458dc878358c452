"""Timelines of cold starts: in order, whole, no longer than clients waited."""

from __future__ import annotations

from noctaya_chaos.timeline import SLACK, Timeline, faults

RECORD = {
    "outcome": "Succeeded",
    "id": "0123456789abcdef0123456789abcdef",
    "pod": "cold-1",
    "requested": "2026-11-30T12:00:00.250Z",
    "replicasWritten": "2026-11-30T12:00:01.000Z",
    "scheduled": "2026-11-30T12:00:01.000Z",
    "started": "2026-11-30T12:00:02.000Z",
    "ready": "2026-11-30T12:00:03.000Z",
    "firstByte": "2026-11-30T12:00:03.250Z",
    "ended": "2026-11-30T12:00:20Z",
    "durations": {"total": "2.75s"},
}


def timeline(**changes: str | None) -> Timeline:
    return Timeline.of({**RECORD, **changes})


def test_a_whole_one_in_order_is_well_and_as_long_as_the_first_byte_took() -> None:
    whole = timeline()
    assert whole.whole
    assert whole.seconds == 3.0
    assert faults(whole, longest=2.9) == []


def test_each_step_back_is_told() -> None:
    assert faults(timeline(ready="2026-11-30T11:58:33.000Z"), longest=3.0) == [
        "the timeline of cold-1 runs backwards: ready 89.0 s before started"
    ]


def test_what_is_unknown_is_no_step_back_but_not_whole() -> None:
    for name in ("firstByte", "id", "ready"):
        part = timeline(**{name: None})
        assert not part.whole
        assert faults(part, longest=1.0) == []
    assert not timeline(outcome="InProgress").whole
    assert Timeline.of({}).seconds == 0.0


def test_one_that_tells_of_more_than_clients_waited_is_wrong() -> None:
    long = timeline(requested="2026-11-30T11:58:30.250Z")
    assert faults(long, longest=3.0) == [
        "the timeline of cold-1 tells of 93.0 s, no client waited over 3.0 s"
    ]
    assert faults(long, longest=93.0 - SLACK) == []
    assert faults(long, longest=0.0) == [], "nobody saw it"
