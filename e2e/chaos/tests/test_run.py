"""When everything is as before; the catalogue, the command and its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_chaos.__main__ import parse, wanted
from noctaya_chaos.catalogue import FAULTS
from noctaya_chaos.load import OK, UNREACHED, Kind, Outcome
from noctaya_chaos.report import BEGIN, END, NoMarks, table, write
from noctaya_chaos.run import CALM, Verdict, steady_at
from noctaya_chaos.verdict import Sighting


def outcome(kind: Kind, begun: float, ended: float, result: str = OK) -> Outcome:
    return Outcome(kind=kind, begun=begun, ended=ended, result=result)


GOOD = [outcome("json", 1, 2), outcome("stream", 1, 3), outcome("cold", 2, 8)]


def test_steady_is_when_the_last_kind_worked() -> None:
    assert steady_at(GOOD, now=10) == 8


@pytest.mark.parametrize("kind", ["json", "stream", "cold"])
def test_without_one_of_each_nothing_is_steady(kind: str) -> None:
    assert steady_at([each for each in GOOD if each.kind != kind], now=10) == 0


def test_what_worked_before_a_failure_does_not_count() -> None:
    failed = outcome("json", 8, 9, UNREACHED)
    assert steady_at([*GOOD, failed], now=20) == 0
    again = [outcome("json", 10, 11), outcome("stream", 10, 12), outcome("cold", 11, 15)]
    assert steady_at([*GOOD, failed, *again], now=20) == 15


def test_a_moment_without_failures_is_not_calm_yet() -> None:
    quick = [outcome(kind, 1, 1.5) for kind in ("json", "stream", "cold")]
    assert steady_at(quick, now=1 + CALM - 0.1) == 0
    assert steady_at(quick, now=1 + CALM) == 1.5


def test_the_catalogue_has_names_once_and_the_command_takes_them() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert wanted(None) == list(FAULTS)
    assert [fault.name for fault in parse(["--only", "rotation", "--only", "dns-slow"]).faults] == [
        "dns-slow",
        "rotation",
    ]


@pytest.mark.parametrize(
    "argv", [["--only", "no-such-fault"], ["--only", "rotation", "--write", "docs/reliability.md"]]
)
def test_bad_arguments_are_refused(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        parse(argv)
    assert error.value.code == 2


def test_the_table_takes_its_place_in_the_page_and_tells_what_broke(tmp_path: Path) -> None:
    seen = Sighting(inflicted=1, ended=2, steady=5, outcomes=GOOD, replicas=[1])
    rows = table(
        [
            Verdict(fault=FAULTS[0], seen=seen, broken=()),
            Verdict(fault=FAULTS[1], seen=seen, broken=("1 stream: cut",)),
        ]
    )
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, rows)
    assert page.read_text() == f"before\n{BEGIN}\n{rows}{END}\nafter\n"
    assert rows.count("\n") == 4
    assert "| **broken: 1 stream: cut**; 1 answers" in rows


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(NoMarks, match=r"page\.md"):
        write(page, "rows")
    assert page.read_text() == "nothing here\n"
