"""Limits of a key: a bucket of requests a minute, requests at a time, and what a refused client is told."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from noctaya_gateway.errors import ConcurrencyLimitExceeded, RateLimitExceeded
from noctaya_gateway.keys import ClientKey, KeyLimits
from noctaya_gateway.limits import Limiter, Permit


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def key(name: str = "web", *, rpm: int = 0, concurrent: int = 0) -> ClientKey:
    return ClientKey(b"sk", name, KeyLimits(rpm, concurrent))


def enter_and_leave(limiter: Limiter, by: ClientKey, times: int) -> None:
    for _ in range(times):
        limiter.enter(by).release()


def retry_after(error: RateLimitExceeded | ConcurrencyLimitExceeded) -> int:
    return int(dict(error.headers)[b"retry-after"])


def test_a_minutes_worth_at_once_then_evenly_and_the_advice_is_true() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    web = key(rpm=6)
    enter_and_leave(limiter, web, 6)
    with pytest.raises(RateLimitExceeded) as refusal:
        limiter.enter(web)
    assert (refusal.value.status, refusal.value.code) == (429, "rate_limit_exceeded")
    assert retry_after(refusal.value) == 10
    clock.now += 9.9
    with pytest.raises(RateLimitExceeded) as refusal:
        limiter.enter(web)
    assert retry_after(refusal.value) == 1
    clock.now += retry_after(refusal.value)
    limiter.enter(web).release()


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    web = key(rpm=1)
    limiter.enter(web).release()
    for _ in range(60):
        clock.now += 0.99
        with pytest.raises(RateLimitExceeded):
            limiter.enter(web)
    clock.now += 0.61
    limiter.enter(web).release()


def test_clients_are_told_where_they_stand_as_openais_clients_know_it() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    web = key(rpm=60)
    assert limiter.enter(web).lines == (
        b"x-ratelimit-limit-requests: 60",
        b"x-ratelimit-remaining-requests: 59",
        b"x-ratelimit-reset-requests: 1s",
    )
    enter_and_leave(limiter, web, 59)
    with pytest.raises(RateLimitExceeded) as refusal:
        limiter.enter(web)
    assert refusal.value.headers == (
        (b"retry-after", b"1"),
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"0"),
        (b"x-ratelimit-reset-requests", b"60s"),
    )
    assert limiter.enter(key("free")).lines == ()


def test_requests_at_a_time_are_bounded_and_given_back_once() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    web = key(concurrent=2)
    first, second = limiter.enter(web), limiter.enter(web)
    with pytest.raises(ConcurrencyLimitExceeded) as refusal:
        limiter.enter(web)
    assert (refusal.value.status, refusal.value.code) == (429, "concurrency_limit_exceeded")
    assert retry_after(refusal.value) == 1
    clock.now += 20
    first.release()
    first.release()
    third = limiter.enter(web)
    with pytest.raises(ConcurrencyLimitExceeded) as refusal:
        limiter.enter(web)
    assert retry_after(refusal.value) == 10, "half of the 20 s that one takes"
    second.release()
    third.release()


def test_a_refusal_for_concurrency_takes_no_request_of_the_minute() -> None:
    limiter = Limiter(Clock())
    web = key(rpm=2, concurrent=1)
    held = limiter.enter(web)
    for _ in range(5):
        with pytest.raises(ConcurrencyLimitExceeded):
            limiter.enter(web)
    held.release()
    limiter.enter(web).release()


def test_keys_of_one_name_share_an_allowance_and_others_do_not() -> None:
    limiter = Limiter(Clock())
    old, new = ClientKey(b"old", "web", KeyLimits(1, 0)), ClientKey(b"new", "web", KeyLimits(1, 0))
    limiter.enter(old).release()
    with pytest.raises(RateLimitExceeded):
        limiter.enter(new)
    limiter.enter(key("other", rpm=1)).release()


def test_a_changed_limit_holds_at_once_and_is_no_gift() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    enter_and_leave(limiter, key(rpm=10), 10)
    with pytest.raises(RateLimitExceeded):
        limiter.enter(key(rpm=600))
    clock.now += 1
    enter_and_leave(limiter, key(rpm=600), 10)
    limiter.enter(key(rpm=0)).release()
    enter_and_leave(limiter, key(rpm=3), 3)
    with pytest.raises(RateLimitExceeded):
        limiter.enter(key(rpm=3))


def samples(limiter: Limiter) -> dict[tuple[str, str, str], float]:
    return {
        (sample.name, sample.labels["key"], sample.labels.get("result", "")): sample.value
        for family in limiter.collect()
        for sample in family.samples
    }


def test_metrics_go_by_name_are_bounded_and_end_with_their_key() -> None:
    limiter = Limiter(Clock())
    assert samples(limiter) == {}
    held = limiter.enter(key("web", rpm=1))
    with pytest.raises(RateLimitExceeded):
        limiter.enter(key("web", rpm=1))
    found = samples(limiter)
    assert found["noctaya_gateway_key_requests_total", "web", "admitted"] == 1
    assert found["noctaya_gateway_key_requests_total", "web", "rate_limited"] == 1
    assert found["noctaya_gateway_key_in_flight", "web", ""] == 1
    for number in range(200):
        limiter.enter(key(f"n{number}"))
    found = samples(limiter)
    assert len({name for _, name, _ in found}) == 101
    assert found["noctaya_gateway_key_requests_total", "other", "admitted"] == 101
    assert found["noctaya_gateway_key_in_flight", "other", ""] == 101
    limiter.keep(["n3"])
    held.release()
    assert {name for _, name, _ in samples(limiter)} == {"n3"}


class LimiterMachine(RuleBasedStateMachine):
    """Against a model: in any minute at most rpm + its refill are admitted, never more than `concurrent`."""

    RPM, CONCURRENT = 12, 3

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.limiter = Limiter(self.clock)
        self.by = key(rpm=self.RPM, concurrent=self.CONCURRENT)
        self.open: list[Permit] = []
        self.admitted: list[float] = []

    @rule()
    def enter(self) -> None:
        try:
            self.open.append(self.limiter.enter(self.by))
        except ConcurrencyLimitExceeded:
            assert len(self.open) == self.CONCURRENT
        except RateLimitExceeded as refusal:
            spent = [at for at in self.admitted if self.clock.now - at < 60]
            assert spent, "nobody is refused who asked for nothing"
            wait = retry_after(refusal)
            assert wait <= 5 + 1e-6, "12 a minute is one in 5 s"
        else:
            self.admitted.append(self.clock.now)

    @rule(number=st.integers(0, 2))
    def leave(self, number: int) -> None:
        if number < len(self.open):
            self.open.pop(number).release()

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def bounded(self) -> None:
        assert len(self.open) <= self.CONCURRENT
        for begin in self.admitted:
            within = [at for at in self.admitted if begin <= at <= begin + 60]
            assert len(within) <= 2 * self.RPM


TestLimiter = LimiterMachine.TestCase
