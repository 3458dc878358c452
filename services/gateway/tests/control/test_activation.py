from __future__ import annotations

import pytest
from noctaya_gateway.activation import (
    BACKOFF_LIMIT,
    RETRY_AFTER_LIMIT,
    RETRY_AFTER_UNKNOWN,
    Activation,
    Outcome,
)
from noctaya_gateway.errors import ActivationFailed

from .clock import ManualTimers

TIMEOUT = 100.0
GRACE = 15.0


class Rig:
    def __init__(self, *, jitter: float = 0.5, grace: float = GRACE) -> None:
        self.timers = ManualTimers()
        self.ready = False
        self.changes = 0
        self.begun = 0
        self.ended: list[tuple[Outcome, str]] = []
        self.activation = Activation(
            timers=self.timers,
            timeout=TIMEOUT,
            grace=grace,
            is_ready=lambda: self.ready,
            jitter=lambda: jitter,
        )
        self.activation.subscribe(
            change=self._changed,
            begin=self._begun,
            end=lambda outcome, why: self.ended.append((outcome, why)),
        )

    def _changed(self) -> None:
        self.changes += 1

    def _begun(self) -> None:
        self.begun += 1

    def become_ready(self) -> None:
        self.ready = True
        self.activation.became_ready()

    def fail_once(self) -> None:
        self.activation.begin()
        self.timers.advance(TIMEOUT)


def test_a_lease_outlives_the_client_and_ends_at_its_deadline() -> None:
    rig = Rig()
    rig.activation.begin()
    assert rig.activation.holds_demand

    rig.timers.advance(TIMEOUT - 0.001)
    assert rig.activation.holds_demand

    rig.timers.advance(0.001)
    assert not rig.activation.holds_demand
    assert rig.activation.failures == 1
    assert [outcome for outcome, _ in rig.ended] == [Outcome.EXPIRED]


def test_an_expired_lease_has_no_grace() -> None:
    rig = Rig()
    rig.fail_once()
    assert not rig.activation.in_grace


def test_a_further_cold_request_renews_the_lease_without_a_second_activation() -> None:
    rig = Rig()
    rig.activation.begin()
    rig.timers.advance(60)
    rig.activation.begin()

    rig.timers.advance(99)

    assert rig.activation.pending
    assert rig.begun == 1


def test_g9_a_lease_cannot_be_renewed_for_ever() -> None:
    rig = Rig()
    rig.activation.begin()
    for _ in range(19):
        rig.timers.advance(10)
        rig.activation.begin()
    assert rig.activation.pending

    rig.timers.advance(10)

    assert not rig.activation.pending
    assert rig.activation.failures == 1


def test_g12_of_contracts_the_lease_ends_at_readiness_and_grace_follows() -> None:
    rig = Rig()
    rig.activation.begin()
    rig.timers.advance(7)
    rig.become_ready()

    assert not rig.activation.pending
    assert rig.activation.holds_demand
    rig.timers.advance(GRACE - 0.001)
    assert rig.activation.holds_demand
    before = rig.changes
    rig.timers.advance(0.001)
    assert not rig.activation.holds_demand
    assert rig.changes == before + 1, "the end of the grace is a change of demand"


def test_readiness_that_nobody_asked_for_gives_no_grace() -> None:
    rig = Rig()
    rig.become_ready()
    assert not rig.activation.holds_demand


def test_a_grace_of_zero_ends_demand_at_readiness() -> None:
    rig = Rig(grace=0.0)
    rig.activation.begin()
    rig.become_ready()
    assert not rig.activation.holds_demand
    assert rig.timers.armed == 0


def test_begin_does_nothing_while_a_backend_is_ready() -> None:
    rig = Rig()
    rig.ready = True
    rig.activation.begin()
    assert not rig.activation.pending
    assert rig.begun == 0


def test_a_service_that_goes_cold_within_the_grace_can_be_activated_again() -> None:
    rig = Rig()
    rig.activation.begin()
    rig.become_ready()
    rig.ready = False
    rig.activation.begin()

    rig.timers.advance(TIMEOUT - 1)
    assert rig.activation.pending
    rig.timers.advance(1)
    assert rig.ended[-1][0] is Outcome.EXPIRED
    assert not rig.activation.holds_demand


def test_g9_failures_back_off_in_doubling_steps_up_to_the_limit() -> None:
    rig = Rig()
    waits = []
    for _ in range(7):
        rig.fail_once()
        waits.append(rig.activation.backoff_remaining)
        rig.timers.advance(rig.activation.backoff_remaining)
    assert waits == [15.0, 30.0, 60.0, 120.0, 240.0, BACKOFF_LIMIT, BACKOFF_LIMIT]


def test_g9_in_back_off_a_cold_request_is_refused_and_makes_no_demand() -> None:
    rig = Rig()
    rig.fail_once()

    with pytest.raises(ActivationFailed) as refusal:
        rig.activation.begin()

    assert refusal.value.status == 503
    assert refusal.value.code == "activation_failed"
    assert refusal.value.headers == ((b"retry-after", b"16"),)
    assert not rig.activation.holds_demand


def test_g9_after_the_back_off_the_next_activation_may_begin() -> None:
    rig = Rig()
    rig.fail_once()
    rig.timers.advance(15.0)
    rig.activation.begin()
    assert rig.activation.pending


def test_g9_the_first_readiness_forgets_all_failures() -> None:
    rig = Rig()
    rig.fail_once()
    rig.become_ready()
    rig.ready = False
    rig.activation.begin()
    assert rig.activation.pending
    assert rig.activation.failures == 0


def test_g9_a_doomed_activation_ends_at_once_with_its_reason() -> None:
    rig = Rig()
    rig.activation.begin()
    rig.activation.doom("image pull failed")

    assert rig.ended == [(Outcome.FAILED, "image pull failed")]
    with pytest.raises(ActivationFailed, match="image pull failed"):
        rig.activation.begin()
    assert rig.timers.armed == 0


def test_dooming_without_an_activation_is_no_failure() -> None:
    rig = Rig()
    rig.activation.doom("old news")
    assert rig.activation.failures == 0
    assert rig.ended == []


def test_g9_retry_after_is_10_while_nothing_was_observed() -> None:
    assert Rig().activation.retry_after() == RETRY_AFTER_UNKNOWN == 10


@pytest.mark.parametrize(
    ("duration", "elapsed", "jitter", "expected"),
    [
        (40.0, 0.0, 0.5, 40),
        (40.0, 30.0, 0.5, 10),
        (40.0, 60.0, 0.5, 10),
        (40.0, 0.0, 0.0, 36),
        (40.0, 0.0, 1.0, 44),
        (0.2, 0.0, 0.5, 1),
        (99.0, 0.0, 0.5, 60),
    ],
)
def test_g9_retry_after_follows_observed_activations(
    duration: float, elapsed: float, jitter: float, expected: int
) -> None:
    rig = Rig(jitter=jitter, grace=0.0)
    rig.activation.begin()
    rig.timers.advance(duration)
    rig.become_ready()
    rig.ready = False
    rig.activation.begin()
    rig.timers.advance(elapsed)
    assert rig.activation.retry_after() == expected


def test_g9_retry_after_never_leaves_1_to_60_and_covers_the_back_off() -> None:
    for jitter in (0.0, 1.0):
        rig = Rig(jitter=jitter)
        for _ in range(6):
            rig.fail_once()
            advised = rig.activation.retry_after()
            assert 1 <= advised <= RETRY_AFTER_LIMIT
            assert advised >= min(rig.activation.backoff_remaining, RETRY_AFTER_LIMIT)
            rig.timers.advance(rig.activation.backoff_remaining)


def test_one_odd_activation_does_not_set_the_estimate() -> None:
    rig = Rig(grace=0.0)
    for duration in (20.0, 20.0, 99.0):
        rig.ready = False
        rig.activation.begin()
        rig.timers.advance(duration)
        rig.become_ready()
    assert rig.activation.retry_after() == 20
