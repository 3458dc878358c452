"""Disks that are full, small or closed."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from noctaya_model_hub import Hub, Pattern, Served
from noctaya_prewarm.disk import check_room, explained, human
from noctaya_prewarm.errors import BadSettings, NoSpace, PrewarmError

from .kit import MIB, assert_whole, fetch


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_model_that_does_not_fit_is_not_begun(served: Served, hub: Hub, small_disk: Path) -> None:
    hub.create("org/big", {"w.safetensors": Pattern(size=9 * MIB)})
    hub.requests.clear()
    with pytest.raises(NoSpace, match=r"9\.0 MiB are still to be written"):
        fetch(served, small_disk / "model", source="hf://org/big")
    assert hub.requests.of("resolve") == []


def test_the_margin_stays_free(served: Served, small_disk: Path) -> None:
    with pytest.raises(NoSpace, match="must stay free"):
        fetch(served, small_disk / "model", disk_margin=4 * MIB)


def test_a_disk_that_fills_up_meanwhile_is_told_and_the_next_run_goes_on(
    served: Served, hub: Hub, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hog = small_disk / "hog"
    target = small_disk / "model"
    with monkeypatch.context() as patch:
        patch.setattr("noctaya_prewarm.download.check_room", lambda *_, **__: hog.write_bytes(bytes(5 * MIB)))
        with pytest.raises(NoSpace, match="is full"):
            fetch(served, target)
    assert not target.exists()
    assert small_disk.joinpath("model.partial").exists()
    hog.unlink()
    hub.requests.clear()
    fetch(served, target)
    assert_whole(target, hub)
    assert sum(seen.sent for seen in hub.requests.of("cdn")) < 5 * MIB


def test_a_read_only_target_is_told_with_the_remedy(served: Served, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(BadSettings, match="mounted read-write"):
        fetch(served, small_disk / "model")


def test_a_volume_itself_is_no_target(served: Served, small_disk: Path) -> None:
    with pytest.raises(BadSettings, match="below a volume"):
        fetch(served, small_disk)


@contextmanager
def somebody(group: int) -> Iterator[None]:
    """This process as a user without rights, whose only group of use is `group`; a volume's fsGroup."""
    old = os.getgroups()
    os.setgroups([group])
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(old)


@pytest.mark.parametrize("source", ["hf://org/model", "modelscope://org/model", "s3://weights/m"])
def test_any_uid_with_the_volumes_group_can_download_and_has_no_home(
    served: Served, hub: Hub, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    hub.bucket("weights", {"m/config.json": "{}"})
    endpoint = served.s3_url if source.startswith("s3") else served.url
    # As root first: what is imported later could not be read by somebody else on every machine.
    fetch(served, tmp_path / "models" / "first", source=source, endpoint=endpoint)
    group = 20_001
    os.chown(small_disk, 0, group)
    small_disk.chmod(0o2775)
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    monkeypatch.setenv("HOME", "/nonexistent")
    old = os.umask(0o002)
    try:
        with somebody(group):
            fetch(served, small_disk / "model", source=source, endpoint=endpoint)
    finally:
        os.umask(old)
    for path in [small_disk / "model", *(small_disk / "model").rglob("*")]:
        assert path.stat().st_gid == group
        assert path.stat().st_mode & 0o020


def test_room_is_counted_with_its_margin(tmp_path: Path) -> None:
    check_room(tmp_path, needed=0, margin=10**18)
    with pytest.raises(NoSpace, match="larger by at least"):
        check_room(tmp_path, needed=10**18, margin=0)


@pytest.mark.parametrize(
    ("number", "kind"),
    [(28, NoSpace), (122, NoSpace), (30, BadSettings), (13, BadSettings), (5, PrewarmError)],
)
def test_errors_of_the_disk_have_their_meaning(number: int, kind: type[PrewarmError]) -> None:
    error = explained(OSError(number, os.strerror(number)), Path("/cache/model"))
    assert type(error) is kind
    assert "/cache/model" in str(error)


def test_sizes_are_told_to_people() -> None:
    assert [human(n) for n in (0, 1023, 1536, 5 * 2**30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
