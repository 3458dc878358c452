"""When everything is as before; the catalogue, the command and its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_chaos.__main__ import parse, put, wanted
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
    "argv",
    [["--only", "no-such-fault"], ["--write", "no/such/page.md"], ["--only", "rotation", "--write", "."]],
)
def test_bad_arguments_are_refused_before_anything_is_broken(argv: list[str]) -> None:
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


def verdict_of(number: int, *, steady: float = 5.0) -> Verdict:
    seen = Sighting(inflicted=1, ended=2, steady=steady, outcomes=GOOD, replicas=[1])
    return Verdict(fault=FAULTS[number], seen=seen, broken=())


def test_rows_of_some_faults_take_their_places_and_the_others_stay(tmp_path: Path) -> None:
    whole = table([verdict_of(number) for number in range(4)])
    order = [fault.done for fault in FAULTS[1:]]
    again = table([verdict_of(4), verdict_of(2, steady=99.0)], known=whole, order=order)
    assert [line.split(" | ")[0] for line in again.splitlines()[2:]] == [
        f"| {fault.done}" for fault in FAULTS[1:5]
    ], "the first row's fault is no more, the fifth is new"
    assert again.count("as before after 97 s") == 1
    assert again.count("as before after 3 s") == 3
    assert table([], known=again, order=order) == again


def test_the_page_gets_the_rows_that_were_seen_of_a_run_that_did_not_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{table([verdict_of(0), verdict_of(1)])}{END}\n")
    assert put(page, [verdict_of(1, steady=50.0)])
    assert page.read_text().count("as before after 3 s") == 1
    assert page.read_text().count("as before after 48 s") == 1
    page.unlink()
    assert not put(page, [verdict_of(1)])
