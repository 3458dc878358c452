"""Files that tell the gateway something, on a disk that is full for a while."""

import errno
from pathlib import Path

import pytest
from noctaya_cli import control_file
from noctaya_cli.control_file import ControlFile


class Disk:
    """Writes like `write_atomically`, or refuses."""

    def __init__(self) -> None:
        self.full = False

    def write(self, path: Path, text: str) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_text(text)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(control_file, "write_atomically", disk.write)
    return disk


def test_what_a_full_disk_refused_is_written_later_and_told_once(tmp_path: Path, disk: Disk) -> None:
    errors = list[OSError]()
    file = ControlFile(tmp_path / "endpoints", failed=errors.append)
    file.tell("one")
    disk.full = True
    file.tell("two")
    file.retry()
    file.tell("three")
    assert file.path.read_text() == "one"
    assert len(errors) == 1
    disk.full = False
    file.retry()
    assert file.path.read_text() == "three"


def test_a_second_time_without_room_is_told_again_and_nothing_is_written_twice(
    tmp_path: Path, disk: Disk
) -> None:
    errors = list[OSError]()
    file = ControlFile(tmp_path / "endpoints", failed=errors.append)
    for text in ("one", "two"):
        disk.full = True
        file.tell(text)
        disk.full = False
        file.retry()
    assert len(errors) == 2
    file.path.unlink()
    file.retry()
    assert not file.path.exists()
