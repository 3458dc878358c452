"""The moments of an activation that the gateway knows, and its id (T1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from noctaya_gateway.activation import Outcome
from noctaya_gateway.timeline import REMEMBERED, ActivationTimeline

TRACE = "0af7651916cd43dd8448eb211c80319c"


@dataclass
class Request:
    """A traced one."""

    trace_id: str = TRACE
    root: str = f"00-{TRACE}-b7ad6b7169203331-01"


def timeline(*moments: float) -> ActivationTimeline:
    times = iter(moments)
    return ActivationTimeline(wall=lambda: next(times))


def test_t1_moments_are_kept_in_order() -> None:
    line = timeline(1.0, 1.5, 2.0, 3.0)
    line.begun()
    line.told(line.pending)
    line.ended(Outcome.READY, "")
    line.first_byte()
    assert line.moments() == {"requested": 1.0, "told": 1.5, "ready": 2.0, "first_byte": 3.0}


def test_t1_only_the_first_byte_of_an_activation_counts() -> None:
    line = timeline(1.0, 2.0, 3.0)
    line.begun()
    line.ended(Outcome.READY, "")
    line.first_byte()
    line.first_byte()
    assert line.moments()["first_byte"] == 3.0


def test_t1_a_first_byte_counts_for_the_activation_that_was_waited_for() -> None:
    line = timeline(1.0, 2.0, 3.0, 4.0)
    line.begun()
    line.ended(Outcome.READY, "")
    waited_for = line.activation_id
    line.begun()
    line.first_byte(waited_for)
    assert [each.first_byte for each in line] == [None, 4.0]


def test_t1_the_id_of_an_activation_that_began_later_is_told_and_never_that_of_an_earlier_one() -> None:
    line = timeline(1.0, 2.0, 3.0)
    assert line.id_after(None) == ""
    line.begun()
    first = line.current
    assert line.id_after(None) == line.activation_id
    line.ended(Outcome.READY, "")
    assert line.id_after(first) == ""
    line.begun()
    assert line.id_after(first) == line.activation_id
    assert first is not None
    assert line.activation_id != first.id


def test_t1_a_failed_activation_was_never_ready() -> None:
    line = timeline(1.0, 2.0)
    line.begun()
    line.ended(Outcome.EXPIRED, "too late")
    line.first_byte()
    assert line.moments() == {"requested": 1.0}


def test_t1_a_new_activation_starts_afresh() -> None:
    line = timeline(1.0, 2.0, 3.0)
    line.begun()
    line.ended(Outcome.READY, "")
    line.begun()
    assert line.moments() == {"requested": 3.0}


def test_t1_demand_that_was_handed_over_before_or_after_is_not_of_this_activation() -> None:
    line = timeline(1.0, 2.0, 3.0)
    line.told(line.pending)
    line.begun()
    late = line.pending
    line.ended(Outcome.READY, "")
    line.told(late)
    assert line.moments() == {"requested": 1.0, "ready": 2.0}


def test_t1_the_id_is_the_trace_id_of_the_request_that_began_it() -> None:
    line = timeline(1.0)
    with line.asked_by(Request()):
        line.begun()
    assert (line.activation_id, line.pending and line.pending.traceparent) == (TRACE, Request().root)


def test_t1_without_a_trace_every_activation_has_an_id_of_the_same_form() -> None:
    line = ActivationTimeline()
    assert line.activation_id == ""
    for _ in range(REMEMBERED + 2):
        with line.asked_by(None):
            line.begun()
        line.ended(Outcome.FAILED, "no")
    ids = {each.id for each in line}
    assert len(ids) == REMEMBERED
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)


def test_t1_one_id_never_stands_for_two_activations() -> None:
    line = ActivationTimeline()
    for _ in range(2):
        with line.asked_by(Request()):
            line.begun()
        line.ended(Outcome.READY, "")
    second, first = line
    assert first.id == TRACE != second.id
    assert first.traceparent == second.traceparent == Request().root


def test_t1_an_activation_that_no_request_began_does_not_get_the_id_of_one_that_only_joined() -> None:
    line = ActivationTimeline()
    with line.asked_by(Request()):
        pass
    line.begun()
    assert line.activation_id != TRACE
