"""What processes use, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from answering import DONE, TOKEN, serving
from noctaya_chaos.account import REFERENCE
from noctaya_chaos.load import OK, UNREACHED, Outcome
from noctaya_chaos.soak import Recorded, latencies, parse, sample, soak, usage
from noctaya_scenarios.chat import Client
from noctaya_scenarios.faults import Process

HOLD = """
import sys
held = bytearray(64 << 20)
files = [open(sys.argv[1]) for _ in range(20)]
print("ready", flush=True)
sys.stdin.read()
"""


def test_usage_is_resident_memory_and_open_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    argv = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        memory, files = usage([Process(child.pid)])
        child.communicate("")
    with pytest.raises(FileNotFoundError):
        usage([Process(os.getpid()), Process(child.pid)])
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


def test_components_that_ended_are_named_and_the_others_recorded() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    series: Recorded = defaultdict(list)
    running = {"gateway 1": [Process(os.getpid())], "scaler": [Process(child.pid)]}
    assert sample(running, series, at=5.0) == ["scaler restarted"]
    assert [(name, unit) for name, unit in series] == [
        ("gateway 1 memory", "MiB"),
        ("gateway 1 open files", "files"),
    ]
    assert series["gateway 1 memory", "MiB"][0][0] == 5.0


class Field:
    """A field whose services answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def prepare(self) -> tuple[Client, Client]:
        return self._client, self._client

    def asleep(self) -> bool:
        return True

    def backend(self) -> Client:
        return self._client


def test_a_soak_that_is_cut_short_tells_what_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def pressed_at_the_tenth(running: object, series: Recorded, *, at: float) -> list[str]:
        nonlocal looks
        looks += 1
        if looks == 10:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr("noctaya_chaos.soak.components", lambda field: {})
    monkeypatch.setattr("noctaya_chaos.soak.sample", pressed_at_the_tenth)
    with serving(200, TOKEN + DONE) as client:
        account = soak(Field(client), seconds=600, every=0.05)  # type: ignore[arg-type]
    assert account.cut_short
    assert not account.held
    assert len(account.loads) == 9
    (reference,) = [each for each in account.findings if each.what == REFERENCE]
    assert reference.trend.early > 0


def test_a_component_that_restarts_ends_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noctaya_chaos.soak.components", lambda field: {})
    monkeypatch.setattr("noctaya_chaos.soak.sample", lambda running, series, *, at: ["scaler restarted"])
    with serving(200, TOKEN + DONE) as client:
        account = soak(Field(client), seconds=600, every=0.05)  # type: ignore[arg-type]
    assert account.failures == ["scaler restarted"]
    assert not account.held


def test_a_page_without_marks_is_refused_at_once(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(SystemExit) as error:
        parse(["--write", str(page)])
    assert error.value.code == 2
