"""Whose time counts: ours as long as it is right, else the API server's."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fake_apiserver import FakeApiServer
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_operator.kube.resources import PODS
from noctaya_operator.kube.server_clock import TOLERANCE, ServerClock
from noctaya_operator.kube.transport import RequestDone

TRUE = datetime(2026, 11, 30, 12, 0, 0, 400_000, tzinfo=UTC)
NEXT = timedelta(seconds=2)


class Clock:
    """A wall clock that is off."""

    def __init__(self, off: float = 0.0) -> None:
        self.true = TRUE
        self.off = timedelta(seconds=off)

    def __call__(self) -> datetime:
        return self.true + self.off


def answer(at: datetime, *, took: float = 0.01, made_after: float = 0.0) -> RequestDone:
    """An answer whose head came just now and that was made at some time since it was asked for."""
    made = at - timedelta(seconds=took - made_after)
    date = format_datetime(made.replace(microsecond=0), usegmt=True)
    return RequestDone("get", "GET", PODS, "server", 200, took, date)


@pytest.mark.parametrize("off", [90.0, -90.0, 3600.0, 2.6])
def test_a_clock_that_is_wrong_gives_way_to_the_servers(off: float) -> None:
    clock = ServerClock(own=Clock(off))
    assert clock.now() == TRUE + timedelta(seconds=off), "nothing was heard yet"
    clock.heard(answer(TRUE))
    assert abs(clock.now() - TRUE) <= timedelta(seconds=0.6)


@settings(max_examples=100, deadline=None)
@given(st.floats(-0.9, 0.9), st.floats(0, 60), st.floats(0, 1), st.floats(0, 0.999))
def test_a_clock_that_is_right_is_left_alone_whatever_answers_take(
    off: float, took: float, made: float, part: float
) -> None:
    own = Clock(off)
    own.true = TRUE.replace(microsecond=int(part * 1e6))
    clock = ServerClock(own=own)
    clock.heard(answer(own.true, took=took, made_after=made * took))
    assert clock.now() == own()


def test_a_late_answer_puts_a_clock_right_that_is_far_off_and_a_quick_one_does_better() -> None:
    clock = ServerClock(own=Clock(3600))
    clock.heard(answer(TRUE, took=30.0))
    assert abs(clock.now() - TRUE) <= timedelta(seconds=16)
    clock.heard(answer(TRUE))
    assert abs(clock.now() - TRUE) <= timedelta(seconds=0.6)


@pytest.mark.parametrize(
    "date", ["", "soon", "Mon, 30 Nov 2026 12:00:00 -0000", "Mon, 99 Nov 2026 12:00:00 GMT"]
)
def test_what_is_no_time_says_nothing(date: str) -> None:
    clock = ServerClock(own=Clock(90))
    clock.heard(answer(TRUE)._replace(date=date))
    assert clock.now() == TRUE + timedelta(seconds=90)


def test_the_correction_stays_the_same_while_it_is_right(caplog: pytest.LogCaptureFixture) -> None:
    """So the same moments stay the same, and one line tells of it."""
    own = Clock(90)
    clock = ServerClock(own=own)
    first = answer(TRUE)
    clock.heard(first)
    behind = clock.now() - own()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            own.true += NEXT + timedelta(milliseconds=170)
            clock.heard(answer(own.true, took=0.3))
            assert clock.now() - own() == behind
    assert caplog.messages == []


def test_a_clock_that_was_put_right_counts_again(caplog: pytest.LogCaptureFixture) -> None:
    own = Clock(90)
    clock = ServerClock(own=own)
    with caplog.at_level(logging.INFO):
        clock.heard(answer(own.true))
        own.off, own.true = timedelta(0), own.true + NEXT
        clock.heard(answer(own.true))
    assert clock.now() == own()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert caplog.records[0].__dict__["seconds_ahead"] == pytest.approx(90, abs=TOLERANCE.total_seconds())


async def test_the_client_tells_the_servers_time_with_every_answer(fake_apiserver: FakeApiServer) -> None:
    done: list[RequestDone] = []
    client = fake_apiserver.client(observe=done.append)
    await client.list(PODS, "ns")
    await client.close()
    told = ServerClock(own=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    told.heard(done[0]._replace(seconds=0.0))
    assert abs(told.now() - datetime.now(UTC)) < timedelta(minutes=1)
