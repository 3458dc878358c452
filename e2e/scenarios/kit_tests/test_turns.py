"""Turns: many in company, one alone, in the order in which they asked."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from noctaya_scenarios.turns import Turns
from noctaya_scenarios.waiting import until

SECONDS = 20.0


def test_scenarios_are_in_company_of_each_other(tmp_path: Path) -> None:
    with Turns(tmp_path), Turns(tmp_path):
        pass


def test_one_is_alone_when_the_others_have_ended_and_nobody_comes_in_meanwhile(tmp_path: Path) -> None:
    seen: list[str] = []
    is_alone, leave = threading.Event(), threading.Event()

    def disturbs() -> None:
        with Turns(tmp_path, waiting=lambda: seen.append("waits")) as turns:
            with turns.alone():
                seen.append("alone")
                is_alone.set()
                leave.wait(SECONDS)
                seen.append("leaves")
            seen.append("in company again")

    def comes_later() -> None:
        with Turns(tmp_path):
            seen.append("came later")

    first, second = threading.Thread(target=disturbs), threading.Thread(target=comes_later)
    with Turns(tmp_path):
        first.start()
        until(lambda: "waits" in seen, within=SECONDS, what="it waits for us", every=0.01)
        second.start()  # behind the one that waits, though we are still here
        assert not is_alone.is_set()
    assert is_alone.wait(SECONDS)
    leave.set()
    for thread in (first, second):
        thread.join(SECONDS)
        assert not thread.is_alive()
    done = [each for each in seen if each != "waits"]  # for the room, and maybe for the queue too
    assert done[:2] == ["alone", "leaves"]
    assert sorted(done[2:]) == ["came later", "in company again"]


def test_after_an_error_alone_it_is_in_company_again_and_then_gone(tmp_path: Path) -> None:
    with Turns(tmp_path) as turns:
        with pytest.raises(ZeroDivisionError), turns.alone():
            raise ZeroDivisionError
        with Turns(tmp_path):
            pass
    with Turns(tmp_path) as another, another.alone():
        pass


def test_who_is_killed_alone_gives_its_turn_up(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from noctaya_scenarios.turns import Turns\n"
        "with Turns(Path(sys.argv[1])) as turns, turns.alone():\n"
        "    print('alone', flush=True); time.sleep(600)"
    )
    argv = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "alone\n"
        process.kill()
    with Turns(tmp_path) as turns, turns.alone():
        pass


def test_a_turn_tells_how_long_it_waited_and_how_long_it_was_alone(tmp_path: Path) -> None:
    asked = threading.Event()

    def disturbs(turns: Turns) -> None:
        with turns, turns.alone():
            time.sleep(0.2)

    turns = Turns(tmp_path, waiting=asked.set)
    thread = threading.Thread(target=disturbs, args=(turns,))
    with Turns(tmp_path):
        thread.start()
        assert asked.wait(SECONDS)
        time.sleep(0.2)
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert turns.waited >= 0.2
    assert turns.lonely >= 0.2
