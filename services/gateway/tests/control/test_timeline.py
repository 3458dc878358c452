"""The moments of an activation that the gateway knows (T1)."""

from noctaya_gateway.activation import Outcome
from noctaya_gateway.timeline import ActivationTimeline


def timeline(*moments: float) -> ActivationTimeline:
    times = iter(moments)
    return ActivationTimeline(wall=lambda: next(times))


def test_t1_moments_are_kept_in_order() -> None:
    line = timeline(1.0, 2.0, 3.0)
    line.begun()
    line.ended(Outcome.READY, "")
    line.first_byte()
    assert line.moments() == {"requested": 1.0, "ready": 2.0, "first_byte": 3.0}


def test_t1_only_the_first_byte_of_an_activation_counts() -> None:
    line = timeline(1.0, 2.0, 3.0)
    line.begun()
    line.ended(Outcome.READY, "")
    line.first_byte()
    line.first_byte()
    assert line.moments()["first_byte"] == 3.0


def test_t1_a_failed_activation_was_never_ready() -> None:
    line = timeline(1.0)
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
