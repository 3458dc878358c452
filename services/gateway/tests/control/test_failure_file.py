from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_gateway.failure_file import LIMIT, FailureFile

from .clock import ManualTimers


class Rig:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.timers = ManualTimers()
        self.failures: list[str] = []
        self.file = FailureFile(path, timers=self.timers, on_failure=self.failures.append)

    def write(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "failure")


def test_g9_a_reason_written_during_an_activation_is_told_within_a_second(rig: Rig) -> None:
    rig.file.begin()
    rig.timers.advance(30)
    rig.write("ImagePullBackOff: no such image\n")
    rig.timers.advance(1)
    assert rig.failures == ["ImagePullBackOff: no such image"]


def test_g9_an_old_reason_says_nothing_about_a_new_activation(rig: Rig) -> None:
    rig.write("old news")
    rig.file.begin()
    rig.timers.advance(60)
    assert rig.failures == []


def test_g9_the_same_reason_written_again_counts(rig: Rig) -> None:
    rig.write("exit code 1")
    rig.file.begin()
    rig.timers.advance(5)
    rig.write("exit code 1")
    rig.timers.advance(1)
    assert rig.failures == ["exit code 1"]


@pytest.mark.parametrize("text", ["", "\n", "  \n\t"])
def test_a_blank_file_is_no_failure_but_what_follows_is(rig: Rig, text: str) -> None:
    rig.file.begin()
    rig.write(text)
    rig.timers.advance(2)
    assert rig.failures == []
    rig.write("boom")
    rig.timers.advance(1)
    assert rig.failures == ["boom"]


def test_it_is_told_once_and_watched_only_while_an_activation_is_pending(rig: Rig) -> None:
    assert rig.timers.armed == 0
    rig.file.begin()
    assert rig.timers.armed == 1
    rig.file.end()
    assert rig.timers.armed == 0
    rig.write("late")
    rig.timers.advance(10)
    assert rig.failures == []

    rig.file.begin()
    rig.write("boom")
    rig.timers.advance(10)
    rig.write("boom again")
    rig.timers.advance(10)
    assert rig.failures == ["boom"]
    assert rig.timers.armed == 0


def test_a_long_reason_is_cut(rig: Rig) -> None:
    rig.file.begin()
    rig.write("x" * 5000)
    rig.timers.advance(1)
    assert rig.failures == ["x" * LIMIT]


def test_a_file_that_cannot_be_read_is_complained_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    rig = Rig(blocked / "below")
    rig.file.begin()
    rig.timers.advance(3)
    assert rig.failures == []
    assert caplog.text.count("can't be read") == 1
