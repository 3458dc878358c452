"""What KEDA and the autoscaler decide."""

import math

from hypothesis import given
from hypothesis import strategies as st
from noctaya_cli.scaling import Scaling, ScalingPolicy


def scaling(*, minimum: int = 0, maximum: int = 5, target: int = 10, stabilization: float = 60) -> Scaling:
    return Scaling(
        ScalingPolicy(minimum=minimum, maximum=maximum, target=target, stabilization=stabilization)
    )


def test_it_begins_with_the_minimum() -> None:
    assert scaling().replicas == 0
    assert scaling(minimum=2).replicas == 2


def test_a_pushed_true_wakes_one_replica_at_once() -> None:
    assert scaling().pushed(True, now=0) == 1


def test_a_pushed_false_changes_nothing() -> None:
    state = scaling()
    state.pushed(True, now=0)
    assert state.pushed(False, now=1000) == 1


def test_a_poll_wakes_too_when_the_push_was_lost() -> None:
    assert scaling().polled(True, demand=1, now=0) == 1


def test_replicas_are_demand_over_target_rounded_up_and_bounded() -> None:
    state = scaling()
    state.pushed(True, now=0)
    assert state.polled(True, demand=10, now=1) == 1
    assert state.polled(True, demand=11, now=2) == 2
    assert state.polled(True, demand=31, now=3) == 4
    assert state.polled(True, demand=1000, now=4) == 5


def test_scale_in_waits_for_the_window_and_takes_its_highest_recommendation() -> None:
    state = scaling(stabilization=60)
    state.pushed(True, now=0)
    state.polled(True, demand=40, now=0)
    assert state.polled(True, demand=1, now=30) == 4
    assert state.polled(True, demand=15, now=50) == 4
    assert state.polled(True, demand=1, now=61) == 2
    assert state.polled(True, demand=1, now=111) == 1


def test_the_last_replica_goes_after_the_cooldown_since_the_last_demand() -> None:
    state = scaling(stabilization=60)
    state.pushed(True, now=0)
    state.polled(True, demand=1, now=10)
    assert state.polled(False, demand=0, now=69) == 1
    assert state.polled(False, demand=0, now=70) == 0


def test_a_stabilization_of_zero_lets_go_with_the_next_poll() -> None:
    state = scaling(stabilization=0)
    state.pushed(True, now=0)
    assert state.polled(False, demand=0, now=0) == 0


def test_a_minimum_is_never_undercut() -> None:
    state = scaling(minimum=2, stabilization=0)
    assert state.polled(False, demand=0, now=1000) == 2


def test_an_unknown_demand_keeps_what_is_there() -> None:
    state = scaling()
    state.pushed(True, now=0)
    state.polled(True, demand=30, now=0)
    assert state.unavailable() == 3


STEP = st.tuples(st.sampled_from(["push", "poll", "unavailable"]), st.integers(0, 200), st.floats(0, 120))


@given(
    minimum=st.integers(0, 3),
    extra=st.integers(0, 4),
    target=st.integers(1, 20),
    stabilization=st.integers(0, 300),
    steps=st.lists(STEP, max_size=40),
)
def test_whatever_is_seen_the_bounds_and_the_promises_hold(
    minimum: int, extra: int, target: int, stabilization: int, steps: list[tuple[str, int, float]]
) -> None:
    maximum = max(1, minimum + extra)
    state = scaling(minimum=minimum, maximum=maximum, target=target, stabilization=stabilization)
    now, last_active = 0.0, -math.inf
    for kind, demand, passed in steps:
        now += passed
        before = state.replicas
        active = demand > 0
        if kind == "unavailable":
            assert state.unavailable() == before
            continue
        if active:
            last_active = now
        after = (
            state.pushed(active, now=now) if kind == "push" else state.polled(active, demand=demand, now=now)
        )
        assert minimum <= after <= maximum
        if active:
            assert after >= 1
        if kind == "push" and not active:
            assert after == before
        if kind == "poll" and active:
            assert after >= min(maximum, math.ceil(demand / target))
        if after == 0 and before > 0:
            assert now - last_active >= stabilization
