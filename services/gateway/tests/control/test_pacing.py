from __future__ import annotations

import pytest
from noctaya_gateway.balancer import Address
from noctaya_gateway.pacing import Pacer

A = Address("10.0.0.1", 8000)
B = Address("10.0.0.2", 8000)


def released(pacer: Pacer, address: Address, *, until: float, step: float = 0.001) -> int:
    count = 0
    ticks = round(until / step)
    for tick in range(ticks + 1):
        now = tick * step
        while pacer.wait(address, now) <= 0:
            pacer.take(address, now)
            count += 1
    return count


def test_g7_a_burst_of_a_tenth_then_the_rate() -> None:
    pacer = Pacer(200)
    count = 0
    while pacer.wait(A, 0.0) <= 0:
        pacer.take(A, 0.0)
        count += 1
    assert count == 20
    assert 219 <= released(Pacer(200), A, until=1.0) <= 221


def test_g7_each_address_has_its_own_rate() -> None:
    pacer = Pacer(10)
    pacer.take(A, 0.0)
    assert pacer.wait(A, 0.0) == pytest.approx(0.1)
    assert pacer.wait(B, 0.0) == 0


def test_a_low_rate_still_releases_one_at_a_time() -> None:
    pacer = Pacer(0.5)
    assert pacer.wait(A, 0.0) == 0
    pacer.take(A, 0.0)
    assert pacer.wait(A, 0.0) == pytest.approx(2.0)
    assert pacer.wait(A, 2.0) == 0


def test_a_rate_of_zero_means_no_pacing() -> None:
    pacer = Pacer(0)
    for _ in range(1000):
        assert pacer.wait(A, 0.0) == 0
        pacer.take(A, 0.0)


def test_a_wait_that_is_slept_is_enough() -> None:
    pacer = Pacer(7)
    now = 0.0
    for _ in range(50):
        now += pacer.wait(A, now)
        assert pacer.wait(A, now) == 0
        pacer.take(A, now)


def test_an_address_that_left_is_forgotten() -> None:
    pacer = Pacer(1)
    pacer.take(A, 0.0)
    pacer.forget(A)
    assert pacer.wait(A, 0.0) == 0


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Pacer(-1)
