"""Promises against what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from noctaya_chaos.load import CUT, OK, UNREACHED, Kind, Outcome
from noctaya_chaos.timeline import Timeline
from noctaya_chaos.verdict import Promise, Sighting, summary, violations


def outcome(kind: Kind = "json", *, begun: float = 11.0, seconds: float = 0.1, result: str = OK) -> Outcome:
    return Outcome(kind=kind, begun=begun, ended=begun + seconds, result=result)


def sighting(*outcomes: Outcome, replicas: Sequence[int] = (1, 1), **changes: Any) -> Sighting:
    base = {"inflicted": 10.0, "ended": 20.0, "steady": 23.0}
    return Sighting(**{**base, **changes}, outcomes=[outcome(), *outcomes], replicas=replicas)


def test_a_promise_holds_when_everything_was_answered() -> None:
    assert violations(Promise(), sighting(outcome("stream"), outcome("cold", seconds=6))) == []


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (sighting(outcome(result="status 503 cold_start")), "1 json: status 503 cold_start"),
        (sighting(outcome("stream", result=CUT)), "1 stream: cut"),
        (sighting(outcome(seconds=5.5)), "a warm answer took 5.5 s (5 s allowed)"),
        (sighting(outcome("cold", seconds=91)), "a cold start took 91 s (90 s allowed)"),
        (sighting(replicas=(1, 0, 1)), "the busy service was scaled to zero"),
        (sighting(steady=None), "not as before in time"),
        (sighting(foreign=("/api/v1/x",)), "changed, though it is not ours: /api/v1/x"),
        (sighting(complaints=("not within 9 s: it leads",)), "not within 9 s: it leads"),
    ],
)
def test_each_break_is_told(seen: Sighting, told: str) -> None:
    assert violations(Promise(), seen) == [told]


def test_a_cold_start_has_to_come_to_pass_in_it_and_to_be_told_where_that_is_promised() -> None:
    record = {
        "outcome": "Succeeded",
        "id": "a" * 32,
        "pod": "cold-1",
        "requested": "2026-11-30T12:00:00.100Z",
    }
    whole = Timeline.of(
        record | {"ready": "2026-11-30T12:00:02.000Z", "firstByte": "2026-11-30T12:00:02.300Z"}
    )
    cold = outcome("cold", seconds=2.2)
    promise = Promise(told=True)
    assert violations(promise, sighting(cold, during=[whole])) == []
    missing = ["no cold start in it of which the status told everything"]
    assert violations(promise, sighting(cold, timelines=[whole])) == missing, "it came after it"
    assert violations(promise, sighting(cold, during=[Timeline.of(record)])) == missing


def test_a_timeline_that_tells_of_more_than_any_client_waited_breaks_every_promise() -> None:
    ends = {"ready": "2026-11-30T12:01:31.000Z", "firstByte": "2026-11-30T12:01:31.200Z"}
    record = {"outcome": "Succeeded", "id": "a" * 32, "pod": "cold-1", "requested": "2026-11-30T12:00:00Z"}
    (told,) = violations(
        Promise(), sighting(outcome("cold", seconds=2.0), timelines=[Timeline.of(record | ends)])
    )
    assert told == "the timeline of cold-1 tells of 91.2 s, no client waited over 2.0 s"


def test_what_may_fail_may_do_so_for_a_while_only() -> None:
    promise = Promise(results=frozenset({UNREACHED}), within=8.0)
    assert violations(promise, sighting(outcome(begun=17.0, result=UNREACHED))) == []
    (told,) = violations(promise, sighting(outcome(begun=19.0, result=UNREACHED)))
    assert told == "1 still failed 9 s after the fault began (8 s allowed)"


def test_nothing_seen_is_no_success() -> None:
    seen = Sighting(inflicted=1, ended=2, steady=3, outcomes=[outcome("stream")], replicas=[1])
    assert violations(Promise(), seen) == ["no warm request was made, so nothing is shown"]


def test_the_summary_counts_and_names_what_failed() -> None:
    seen = sighting(outcome("cold", seconds=4), outcome("stream", result=CUT))
    assert summary(seen) == (
        "1 answers, 1 streams, 1 cold starts: 1 cut; slowest warm 0.1 s, cold 4.0 s; as before after 3 s"
    )
