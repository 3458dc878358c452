"""Flat or not: leaks, steps, noise, and a machine that becomes slower."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_chaos.account import BOUNDS, FILES, LATENCY, MEMORY
from noctaya_chaos.trend import Bound, TooFew, Trend, trend_of

HALF_AN_HOUR = range(0, 1800, 15)
CALM = settings(max_examples=60, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10_000)


def series(value: Callable[[float], float], *, seed: int, noise: float) -> list[tuple[float, float]]:
    rng = random.Random(seed)
    return [(second, value(second / 60) + rng.uniform(-noise, noise)) for second in HALF_AN_HOUR]


@CALM
@given(SEEDS)
def test_a_leak_of_a_mebibyte_a_minute_is_seen_through_noise(seed: int) -> None:
    leak = trend_of(series(lambda minute: 85 + minute, seed=seed, noise=2))
    assert leak.hourly == pytest.approx(60, rel=0.1)
    assert not leak.flat(BOUNDS[MEMORY])


@CALM
@given(SEEDS)
def test_a_leak_in_pieces_is_seen(seed: int) -> None:
    """An allocator takes memory by the piece: 4 MiB every four minutes."""
    leak = trend_of(series(lambda minute: 85 + minute // 4 * 4, seed=seed, noise=1))
    assert not leak.flat(BOUNDS[MEMORY])


@CALM
@given(SEEDS, st.floats(8, 30), st.floats(0, 8))
def test_memory_taken_once_and_kept_is_no_leak(seed: int, minute_of_step: float, step: float) -> None:
    taken = series(lambda minute: 85 + (step if minute >= minute_of_step else 0), seed=seed, noise=0.5)
    assert trend_of(taken).flat(BOUNDS[MEMORY])


def test_much_memory_is_too_much_also_when_it_is_taken_at_once() -> None:
    taken = series(lambda minute: 85 + (12 if minute >= 20 else 0), seed=1, noise=0.5)
    assert not trend_of(taken).flat(BOUNDS[MEMORY])


@CALM
@given(SEEDS)
def test_a_warm_up_is_no_leak(seed: int) -> None:
    warm_up = trend_of(series(lambda minute: 50 + min(minute, 7) * 3, seed=seed, noise=0.5))
    assert warm_up.flat(BOUNDS[MEMORY])


@CALM
@given(SEEDS)
def test_a_file_left_open_every_minute_is_seen_and_connections_of_the_moment_are_not(seed: int) -> None:
    assert not trend_of(series(lambda minute: 20 + minute, seed=seed, noise=3)).flat(BOUNDS[FILES])
    assert trend_of(series(lambda minute: 20, seed=seed, noise=4)).flat(BOUNDS[FILES])


@CALM
@given(SEEDS, st.floats(1, 3))
def test_latency_that_grows_with_the_machines_own_is_flat(seed: int, slower: float) -> None:
    late = trend_of(series(lambda minute: 8 * (slower if minute > 15 else 1), seed=seed, noise=1))
    assert late.flat(BOUNDS[LATENCY], slower=slower)


@CALM
@given(SEEDS)
def test_latency_that_doubles_between_the_quarters_while_the_machines_own_does_not_is_seen(seed: int) -> None:
    late = trend_of(series(lambda minute: 8 + 16 * minute / 30, seed=seed, noise=1))
    assert not late.flat(BOUNDS[LATENCY], slower=1.1)


@CALM
@given(st.lists(st.floats(0, 1), min_size=8, max_size=60), st.floats(0, 1000))
def test_noise_around_a_level_is_flat_within_its_height(noise: list[float], level: float) -> None:
    trend = trend_of([(index, level + each) for index, each in enumerate(noise)])
    assert trend.flat(Bound(absolute=1.0 + 1e-9))


def test_the_larger_of_both_bounds_counts() -> None:
    trend = Trend(early=100, middle=102, late=104, hourly=8)
    assert trend.flat(Bound(absolute=1, share=0.05))
    assert not trend.flat(Bound(absolute=3, share=0.03))


def test_few_samples_say_nothing() -> None:
    with pytest.raises(TooFew, match="7 samples"):
        trend_of([(0.0, 1.0)] * 7)
