from collections.abc import Callable

import pytest
from noctaya_prewarm.errors import Interrupted, NetworkFault
from noctaya_prewarm.fetch import Gate
from noctaya_prewarm.retry import Patience, Retryable, asked_pause, persist
from noctaya_prewarm.run import Run

from .kit import settings


def test_m2_one_connections_pause_is_that_of_all() -> None:
    clock = Clock()
    gate = Gate(clock)
    assert gate.delay() == 0
    gate.close_for(10)
    gate.close_for(3)
    assert gate.delay() == 10
    clock.now += 12
    assert gate.delay() == 0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def patience(clock: Clock, *, jitter: Callable[[], float] = lambda: 1.0, **changes: float) -> Patience:
    run = Run(settings(max_backoff=60.0, retry_limit=600.0).model_copy(update=changes), clock=clock)
    return Patience(run, sleep=clock.sleep, jitter=jitter)


def test_m2_pauses_double_up_to_the_cap() -> None:
    clock = Clock()
    tries = patience(clock, max_backoff=4.0)
    for _ in range(6):
        tries.bad(Retryable("no"))
    assert clock.slept == [0.5, 1, 2, 4, 4, 4]


def test_m2_jitter_takes_at_most_half() -> None:
    clock = Clock()
    tries = patience(clock, jitter=lambda: 0.0)
    tries.bad(Retryable("no"))
    assert clock.slept == [0.25]


def test_m2_what_the_server_asks_for_is_waited_for_beyond_the_cap() -> None:
    clock = Clock()
    patience(clock, max_backoff=1.0).bad(Retryable("slow down", after=120))
    assert clock.slept == [120]


def test_m2_a_fresh_link_needs_no_pause_but_a_second_one_does() -> None:
    clock = Clock()
    tries = patience(clock)
    tries.bad(Retryable("expired", at_once=True))
    tries.bad(Retryable("expired", at_once=True))
    assert clock.slept == [0, 1]


def test_m2_progress_forgets_the_failures() -> None:
    clock = Clock()
    tries = patience(clock, retry_limit=2.0)
    for _ in range(20):
        tries.bad(Retryable("no"))
        tries.good()
    assert clock.slept == [0.5] * 20


def test_m2_failing_for_too_long_ends_with_the_last_reason() -> None:
    clock = Clock()
    tries = patience(clock, retry_limit=10.0)
    with pytest.raises(NetworkFault, match="connection refused; that is failure 5 in a row"):
        for _ in range(100):
            tries.bad(Retryable("connection refused"))
    assert clock.now <= 10


def test_persist_returns_the_first_success() -> None:
    clock = Clock()
    run = Run(settings(max_backoff=0.001, retry_limit=5.0))
    answers = iter([Retryable("a"), Retryable("b")])

    def act() -> str:
        failure = next(answers, None)
        if failure is not None:
            raise failure
        return "done"

    assert persist(run, act) == "done"
    assert run.progress.retries == 2
    assert clock.slept == []


def test_persist_ends_with_the_run() -> None:
    run = Run(settings())
    run.abort(Interrupted("stop"))
    with pytest.raises(Interrupted):
        persist(run, lambda: pytest.fail("asked after the end"))


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55),
        ({"ratelimit": '"api";r=3;t=55'}, None),
        ({"retry-after": "2", "ratelimit": '"api";r=0;t=55'}, 2),
    ],
)
def test_m2_retry_after_is_read_in_every_form(headers: dict[str, str], pause: float | None) -> None:
    assert asked_pause(headers, now=100.0) == pause
