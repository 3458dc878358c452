"""What a soak came to, in words and as a table."""

from __future__ import annotations

from datetime import date
from typing import Any

from noctaya_chaos.account import FILES, LATENCY, MEMORY, REFERENCE, Account, Finding
from noctaya_chaos.load import OK, UNREACHED, Kind, Outcome
from noctaya_chaos.trend import Trend

LEVEL = [(float(second), 60.0) for second in range(40)]
RISING = [(float(second), 60.0 + second) for second in range(40)]


def outcomes(*results: str, kind: Kind = "json") -> list[Outcome]:
    return [Outcome(kind=kind, begun=1.0, ended=1.1, result=result) for result in results]


def account(**changes: Any) -> Account:
    base: dict[str, Any] = {
        "minutes": 30.0,
        "planned": 30.0,
        "outcomes": outcomes(OK, OK),
        "series": {("gateway 1 memory", MEMORY): LEVEL},
        "loads": [2.0, 4.0, 3.0],
        "processors": 2,
    }
    return Account(**{**base, **changes})


def test_everything_flat_and_nothing_failed_holds() -> None:
    whole = account()
    assert whole.held
    assert whole.summary == (
        "30 minutes: 2 answers, 0 streams, 0 cold starts, none failed; 2 processors, "
        "load 2.0 to 4.0, median 3.0"
    )


def test_growth_a_failed_request_a_restart_or_an_early_end_does_not_hold() -> None:
    assert not account(series={("gateway 1 memory", MEMORY): RISING}).held
    assert not account(outcomes=outcomes(OK, UNREACHED)).held
    assert not account(broken=["gateway 1 restarted"]).held
    assert not account(minutes=29.0).held
    assert not account(series={}).held


def test_what_was_cut_short_says_so_and_tells_what_was_seen() -> None:
    short = account(minutes=12.2, outcomes=outcomes(OK, UNREACHED))
    assert short.summary.startswith("12 minutes of 30, cut short: 2 answers, 0 streams, 0 cold starts, ")
    assert "1 json: no connection" in short.summary
    assert len(short.findings) == 1
    assert not account(minutes=12.2, broken=["gateway 1 restarted"]).cut_short


def test_latency_is_judged_beside_that_of_the_machine() -> None:
    late = [(float(second), 8.0 if second < 20 else 16.0) for second in range(40)]
    alone = account(series={("json latency", LATENCY): late})
    assert [finding.verdict for finding in alone.findings] == ["GROWS"]
    beside = account(series={(REFERENCE, LATENCY): late, ("json latency", LATENCY): late})
    assert [finding.verdict for finding in beside.findings] == ["the machine's", "flat"]
    slow = {(REFERENCE, LATENCY): late, ("gateway 1 memory", MEMORY): RISING}
    assert not account(series=slow).held, "a slow machine excuses no leak"


def test_the_table_has_a_row_a_series_with_its_slope() -> None:
    few = [(1.0, 1.0)]
    text = account(series={("gateway 1 open files", FILES): LEVEL, ("cold latency", LATENCY): few}).markdown(
        date(2026, 11, 30)
    )
    assert text.startswith("2026-11-30, 30 minutes: 2 answers")
    assert "| gateway 1 open files | 60.0 files | 60.0 files | +0.00 | flat |\n" in text
    assert "cold latency" not in text
    assert text.endswith("|\n\n")


def test_a_line_tells_what_grows() -> None:
    trend = Trend(early=100, middle=110, late=120, hourly=80)
    assert str(Finding(what="gateway memory", unit=MEMORY, trend=trend)).endswith("+80.00 an hour  GROWS")
