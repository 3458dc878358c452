from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_gateway.prewarming import DEFAULT_MESSAGE, LIMIT, PrewarmingFile, parse_notice

from .clock import ManualTimers

NOW = 1_800_000_000.0


class Rig:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.timers = ManualTimers()
        self.began = self.timers.time()
        self.file = PrewarmingFile(path, timers=self.timers, now=self.clock, jitter=lambda: 0.0)

    def clock(self) -> float:
        return NOW + self.timers.time() - self.began

    def write(self, left: float | None, message: str = "weights are on their way") -> None:
        assert self.path is not None
        told = {"message": message}
        if left is not None:
            told["readyAt"] = datetime.fromtimestamp(self.clock() + left, UTC).isoformat()
        self.path.write_text(json.dumps(told))
        self.timers.advance(1)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "prewarming")


def test_without_a_file_or_text_nobody_downloads(rig: Rig) -> None:
    assert Rig(None).file.notice() is None
    assert rig.file.notice() is None
    assert rig.path is not None
    rig.path.write_text("  \n")
    rig.timers.advance(1)
    assert rig.file.notice() is None


def test_what_is_left_runs_down_with_the_clock_and_not_below_zero(rig: Rig) -> None:
    rig.write(601)
    notice = rig.file.notice()
    assert notice is not None
    assert notice.left == pytest.approx(600, abs=1)
    rig.timers.advance(400)
    later = rig.file.notice()
    assert later is not None
    assert later.left == pytest.approx(200, abs=1)
    rig.timers.advance(4000)
    over = rig.file.notice()
    assert over is not None
    assert over.left == 0.0


def test_the_end_of_the_download_is_seen_within_a_second(rig: Rig) -> None:
    rig.write(600)
    assert rig.file.notice() is not None
    assert rig.path is not None
    rig.path.write_text("")
    rig.timers.advance(0.5)
    assert rig.file.notice() is None


def test_a_burst_of_requests_reads_the_file_once(rig: Rig) -> None:
    rig.write(600)
    assert rig.file.notice() is not None
    assert rig.path is not None
    rig.path.unlink()
    assert rig.file.notice() is not None
    rig.timers.advance(0.5)
    assert rig.file.notice() is None


@pytest.mark.parametrize(
    ("left", "seconds", "words"),
    [
        (None, 30, "Weights are on their way."),
        (0.0, 1, "for about 1 seconds more."),
        (42.0, 42, "for about 42 seconds more."),
        (600.0, 600, "for about 10 minutes more."),
        (86400.0, 3600, "for about 24 hours more."),
    ],
)
def test_the_advice_to_retry_is_what_is_left_at_most_an_hour(
    rig: Rig, left: float | None, seconds: int, words: str
) -> None:
    rig.write(None if left is None else left + 1)
    notice = rig.file.notice()
    assert notice is not None
    refusal = rig.file.refusal(notice)
    assert (refusal.status, refusal.code) == (503, "prewarming")
    assert refusal.headers == ((b"retry-after", b"%d" % seconds),)
    assert refusal.message.endswith(words)


def test_who_waited_in_vain_is_told_for_how_long(rig: Rig) -> None:
    rig.write(None)
    notice = rig.file.notice()
    assert notice is not None
    told = rig.file.refusal(notice, waited=300.04).message
    assert told == "The model did not become ready within 300 seconds: weights are on their way."


def test_a_file_that_can_not_be_read_says_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig(tmp_path)
    for _ in range(3):
        assert rig.file.notice() is None
        rig.timers.advance(1)
    assert [record.message for record in caplog.records] == ["prewarming file can't be read"]


@pytest.mark.parametrize(
    ("text", "message", "ready"),
    [
        ("", "", None),
        ("plain words", "plain words", None),
        ("{}", DEFAULT_MESSAGE, None),
        ('{"message": ""}', DEFAULT_MESSAGE, None),
        ('{"message": "m", "readyAt": "soon"}', "m", None),
        ('{"message": "m", "readyAt": 7}', "m", None),
        ('{"message": "m", "readyAt": "2026-11-30T08:00:00Z"}', "m", 1796025600.0),
        ("[1]", "[1]", None),
    ],
)
def test_a_notice_is_read_as_far_as_it_makes_sense(text: str, message: str, ready: float | None) -> None:
    assert parse_notice(text) == (message, ready, "")


@given(
    st.text(max_size=200)
    | st.dictionaries(st.sampled_from(["message", "readyAt"]), st.text()).map(json.dumps)
)
def test_no_text_breaks_the_gateway(text: str) -> None:
    message, _, _ = parse_notice(text)
    assert len(message) <= LIMIT
    assert bool(message) is bool(text)
