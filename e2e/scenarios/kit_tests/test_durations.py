"""Durations of scenarios, from pytest's own report."""

from __future__ import annotations

from pathlib import Path

from noctaya_scenarios.durations import FILE, TOLD, Duration, read, told

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest">
<testcase classname="tests" name="test_short" time="3.25"/>
<testcase classname="tests" name="test_long" time="99.5"><properties>
<property name="waited-for-turn" value="40.2"/><property name="alone" value="30.0"/>
</properties></testcase>
</testsuite></testsuites>
"""


def test_a_report_gives_the_longest_first_with_what_they_waited_for(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(REPORT)
    long, short = read(tmp_path)
    assert (long.scenario, long.seconds, long.waited, long.alone) == ("test_long", 99.5, 40.2, 30.0)
    assert (short.scenario, short.seconds, short.waited, short.alone) == ("test_short", 3.25, 0.0, 0.0)
    assert told((short, long)) == [
        " 100 s  test_long (40 s waiting for its turn, 30 s alone)",
        "   3 s  test_short",
    ]


def test_a_phase_that_left_no_report_has_no_durations(tmp_path: Path) -> None:
    assert read(tmp_path) == ()


def test_only_the_longest_are_told() -> None:
    many = [Duration(scenario=f"test_{number}", seconds=number) for number in range(20)]
    assert [line.split()[-1] for line in told(many)] == [f"test_{19 - each}" for each in range(TOLD)]
