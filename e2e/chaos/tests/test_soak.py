"""Flat or not, and what a process uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_chaos.load import OK, UNREACHED, Outcome
from noctaya_chaos.soak import Finding, alive, latencies, parse, usage
from noctaya_chaos.trend import Bound, TooFew, Trend, trend_of
from noctaya_scenarios.faults import Process

HOLD = """
import sys
held = bytearray(64 << 20)
files = [open(sys.argv[1]) for _ in range(20)]
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_leak_is_seen_and_a_warm_up_is_not() -> None:
    leak = trend_of([(second, 50 + second / 60) for second in range(0, 1800, 5)])
    assert leak.hourly == pytest.approx(60)
    assert not leak.flat(Bound(absolute=2, share=0.03))
    warm_up = trend_of([(second, 50 + min(second, 300) / 30) for second in range(0, 1800, 5)])
    assert warm_up.late - warm_up.early == 0
    assert warm_up.flat(Bound(absolute=0))


@given(st.lists(st.floats(0, 1), min_size=8, max_size=60), st.floats(0, 1000))
def test_noise_around_a_level_is_flat_within_its_height(noise: list[float], level: float) -> None:
    trend = trend_of([(index, level + each) for index, each in enumerate(noise)])
    assert trend.flat(Bound(absolute=1.0 + 1e-9))


def test_the_larger_of_both_bounds_counts() -> None:
    trend = Trend(early=100, late=104, hourly=8)
    assert trend.flat(Bound(absolute=1, share=0.05))
    assert not trend.flat(Bound(absolute=3, share=0.03))
    assert str(Finding(what="gateway memory", unit="MiB", trend=trend)).endswith("+8.00 an hour  GROWS")


def test_few_samples_say_nothing() -> None:
    with pytest.raises(TooFew, match="7 samples"):
        trend_of([(0.0, 1.0)] * 7)


def test_usage_is_resident_memory_and_open_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    argv = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        memory, files = usage([Process(child.pid)])
        assert alive([Process(child.pid)])
        child.communicate("")
    assert not alive([Process(os.getpid()), Process(child.pid)])
    assert 64 << 20 < memory < 160 << 20
    assert files >= 22
    alone = usage([Process(os.getpid())])
    twice = usage([Process(os.getpid())] * 2)
    assert twice[0] == pytest.approx(2 * alone[0], rel=0.1)


def test_latencies_are_those_of_answers_that_began_in_time() -> None:
    def outcome(begun: float, result: str = OK) -> Outcome:
        return Outcome(kind="json", begun=begun, ended=begun + 0.25, result=result)

    outcomes = [outcome(9), outcome(11), outcome(12, UNREACHED)]
    assert latencies(outcomes, "json", begun=10) == [(1, 250)]
    assert latencies(outcomes, "cold", begun=10) == []


@pytest.mark.parametrize("minutes", ["1", "-3", "soon"])
def test_a_time_that_shows_nothing_is_refused(minutes: str) -> None:
    with pytest.raises(SystemExit) as error:
        parse(["--minutes", minutes])
    assert error.value.code == 2
