"""The runner: which scenarios run when, and what its exit code says."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
from noctaya_cluster import Cluster, ClusterError
from noctaya_scenarios import __main__ as runner
from noctaya_scenarios import failures
from noctaya_scenarios.__main__ import (
    PHASES,
    Outcome,
    command_of,
    main,
    parse_arguments,
    phases_for,
    summary,
    verdict,
    whole,
)
from noctaya_scenarios.failures import Failure


def outcome(code: int) -> Outcome:
    return Outcome(phase=PHASES[0], code=code, seconds=1)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 5], 0), ([5, 5], 1), ([0, 1], 1), ([2, 0], 1), ([], 1)],
)
def test_everything_that_ran_has_to_pass_and_something_has_to_run(codes: list[int], expected: int) -> None:
    assert verdict([outcome(code) for code in codes]) == expected


def test_arguments_that_are_not_ours_go_to_pytest() -> None:
    options, rest = parse_arguments(["--workers", "2", "-k", "drain", "--cluster", "kind"])
    together = next(phase for phase in PHASES if phase.name == "together")
    command = command_of(together, options, rest)
    assert command[-2:] == ["-k", "drain"]
    assert {"-n2", "--cluster=kind", f"--gateways={together.gateways}"} <= set(command)
    alone = next(phase for phase in PHASES if phase.side_by_side == 1)
    assert not any(word.startswith("-n") for word in command_of(alone, options, rest))
    few = next(phase for phase in PHASES if phase.name == "last")
    options.workers = 5
    assert f"-n{few.side_by_side}" in command_of(few, options, rest)


SCENARIO = """
from pathlib import Path

def test_steady() -> None:
    assert True

def test_unsteady() -> None:
    before = Path({flag!r})
    seen = before.exists()
    before.touch()
    assert seen
"""


CONFTEST = Path(__file__).parents[1] / "tests" / "conftest.py"


@pytest.mark.parametrize(
    ("broken", "code", "unsteady"), [("", 0, 1), ("def test_broken(): assert 1 == 2", 1, 0)]
)
def test_what_failed_is_tried_once_more_alone_and_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, code: int, unsteady: int
) -> None:
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "conftest.py").write_text(CONFTEST.read_text())
    text = SCENARIO.format(flag=str(tmp_path / "flag")) + broken
    (scenarios / "test_scenario.py").write_text(text)
    monkeypatch.setattr(runner, "TESTS", scenarios)
    monkeypatch.setattr(runner, "open_lab", lambda *_, **__: nullcontext())
    options, rest = parse_arguments(["--reports", str(tmp_path / "reports"), "-p", "no:xdist", "-m", ""])
    alone = next(phase for phase in PHASES if phase.side_by_side == 1)
    stale = Failure(
        scenario="old",
        stage="call",
        where="",
        message="",
        seconds=1,
        ended="2026-11-29T00:00:00+00:00",
        load=1,
    )
    failures.write(tmp_path / "reports" / alone.name / "old", stale, text="")
    ended = runner.run(alone, cast(Cluster, None), options, rest)
    assert (ended.code, len(ended.unsteady)) == (code, unsteady)
    assert verdict([ended]) == code
    text = "\n".join(summary([ended]))
    assert ("unsteady, passed at the second try: " in text) == bool(unsteady)
    assert ("failed: " in text) == bool(broken)
    assert "call failed after 0 s" in text
    assert "test_scenario.py:" in text
    assert "assert seen" in text or "assert False" in text
    assert ("assert 1 == 2" in text) == bool(broken)
    assert "old" not in ended.failures
    assert {each.scenario for each in ended.durations} >= {"test_steady", "test_unsteady"}
    assert "s  test_steady" in text
    for name in ended.failures:
        folder = tmp_path / "reports" / alone.name / name.rpartition("::")[2]
        assert "def test_" in (folder / failures.TEXT).read_text()


def test_every_scenario_runs_in_a_phase_with_two_gateways_unless_it_needs_one() -> None:
    two = [phase.marks for phase in PHASES if phase.gateways == 2]
    assert two == ["first", "not first and not last and not one_gateway", "last"]


class Somebodys:
    name = "existing"


class Ours:
    name = "host"


def test_a_cluster_that_is_not_ours_is_not_disturbed(capsys: pytest.CaptureFixture[str]) -> None:
    names = [phase.name for phase in PHASES]
    assert [phase.name for phase in phases_for(Ours(), names)] == names  # type: ignore[arg-type]
    kept = phases_for(Somebodys(), names)  # type: ignore[arg-type]
    assert [phase.name for phase in kept] == ["together", "one-gateway"]
    said = capsys.readouterr().out
    assert "first is left out" in said
    assert "last is left out" in said


@pytest.mark.parametrize(("seconds", "missed"), [(1499.0, False), (1500.0, True)])
def test_the_summary_says_whether_the_goal_was_reached(seconds: float, missed: bool) -> None:
    assert ("MISSED" in whole(seconds)) == missed


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_a_missing_provider_is_said_and_in_ci_it_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, code: int
) -> None:
    def none(_name: str | None, *, confirmed: bool) -> None:
        raise ClusterError("no Docker, not root")

    monkeypatch.setattr(runner, "choose_provider", none)
    monkeypatch.setenv("CI", ci)
    assert main([]) == code
    assert "no Docker, not root" in capsys.readouterr().err
