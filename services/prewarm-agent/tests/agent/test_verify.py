"""verify and wait: what a marker is worth, and what a serving pod does before it starts."""

import os
import threading
import time
from pathlib import Path

import pytest
from noctaya_model_hub import Hub, Served
from noctaya_prewarm.errors import DeadlineExceeded, IntegrityFault, Interrupted, NotFound
from noctaya_prewarm.marker import (
    AlphaMarker,
    MarkedFile,
    Marker,
    read_marker,
    remove_marker,
    timestamp,
    write_marker,
)
from noctaya_prewarm.run import Run
from noctaya_prewarm.verify import verify
from noctaya_prewarm.wait import wait

from .kit import SOURCE, fetch, marker_of, settings


def damage(path: Path, *, keep_time: bool) -> None:
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_whole_model_passes_both_checks(served: Served, target: Path) -> None:
    fetch(served, target)
    for deep in (False, True):
        run = Run(settings())
        verify(run, marker=target / ".noctaya-ready", deep=deep)
        assert run.progress.snapshot().bytesDone == run.progress.snapshot().bytesTotal > 0


@pytest.mark.parametrize(
    ("deep", "keep_time", "noticed"), [(True, True, True), (False, False, True), (False, True, False)]
)
def test_the_cheap_check_hashes_what_was_touched_and_the_deep_one_everything(
    served: Served, target: Path, deep: bool, keep_time: bool, noticed: bool
) -> None:
    fetch(served, target)
    damage(target / "model.safetensors", keep_time=keep_time)
    if noticed:
        with pytest.raises(IntegrityFault, match=r"model\.safetensors: content is sha256"):
            verify(Run(settings()), marker=target / ".noctaya-ready", deep=deep)
    else:
        verify(Run(settings()), marker=target / ".noctaya-ready", deep=deep)


def test_what_is_missing_or_of_another_size_is_listed(served: Served, target: Path) -> None:
    fetch(served, target)
    (target / "config.json").unlink()
    os.truncate(target / "model.safetensors", 5)
    with pytest.raises(IntegrityFault) as caught:
        verify(Run(settings()), marker=target / ".noctaya-ready", deep=False)
    assert "config.json: missing" in str(caught.value)
    assert "5 bytes instead of" in str(caught.value)


def test_a_copied_model_passes_by_its_content(served: Served, target: Path) -> None:
    fetch(served, target)
    for path in target.rglob("*"):
        os.utime(path, (1, 1))
    verify(Run(settings()), marker=target / ".noctaya-ready", deep=False)


def test_a_model_is_verified_where_its_marker_lies(served: Served, target: Path) -> None:
    fetch(served, target)
    moved = target.rename(target.with_name("mounted-elsewhere"))
    verify(Run(settings()), marker=moved / ".noctaya-ready", deep=True)


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, NotFound, "no marker"),
        (b"", IntegrityFault, "v0.4"),
        (b"{", IntegrityFault, "not one this agent can read"),
        (b'{"version": 2}', IntegrityFault, "version"),
        (b"[]", IntegrityFault, "not one"),
    ],
)
def test_a_marker_that_says_nothing_is_told_so(
    tmp_path: Path, content: bytes | None, error: type[Exception], words: str
) -> None:
    marker = tmp_path / "ready"
    if content is not None:
        marker.write_bytes(content)
    with pytest.raises(error, match=words):
        verify(Run(settings()), marker=marker, deep=False)


def test_m4_a_marker_cannot_make_the_check_read_elsewhere(tmp_path: Path) -> None:
    marker = tmp_path / "ready"
    file = MarkedFile(path="../../etc/hostname", size=1, sha256="00" * 32)
    write_marker(marker, sample(tmp_path, files=(file,)))
    with pytest.raises(Exception, match=r"\.\."):
        verify(Run(settings()), marker=marker, deep=False)


def test_a_marker_is_read_as_it_was_written_and_removed(tmp_path: Path) -> None:
    marker = tmp_path / "deep" / "ready"
    written = sample(tmp_path, files=(MarkedFile(path="a", size=3, md5="ab", mtime_ns=7),))
    write_marker(marker, written)
    assert read_marker(marker) == written
    assert marker.read_text().startswith('{"version":1,"source":')
    assert [path.name for path in marker.parent.iterdir()] == ["ready"]
    remove_marker(marker)
    remove_marker(marker)
    assert read_marker(marker) is None


def test_an_empty_marker_is_the_alphas(tmp_path: Path) -> None:
    (tmp_path / "ready").write_text("\n")
    assert isinstance(read_marker(tmp_path / "ready"), AlphaMarker)


def test_moments_are_written_as_rfc_3339() -> None:
    assert timestamp(0.9) == "1970-01-01T00:00:00Z"


def test_wait_returns_once_the_marker_is_there(served: Served, target: Path) -> None:
    marker = target / ".noctaya-ready"
    waiter = threading.Thread(
        target=wait,
        args=(Run(settings(), limited=False),),
        kwargs={"marker": marker, "source": SOURCE, "timeout": 60},
    )
    waiter.start()
    fetch(served, target)
    waiter.join(30)
    assert not waiter.is_alive()
    assert marker_of(target).source == SOURCE


@pytest.mark.parametrize(
    ("content", "source", "there"),
    [
        ("hf://org/model", "hf://org/model", True),
        ("hf://org/model", None, True),
        ("hf://org/other", "hf://org/model", False),
        ("", "hf://org/model", True),
        ("", None, True),
        (None, None, False),
        ("{", None, False),
    ],
)
def test_wait_holds_the_marker_to_the_source(
    tmp_path: Path, content: str | None, source: str | None, there: bool
) -> None:
    marker = tmp_path / "ready"
    if content and content != "{":
        write_marker(marker, sample(tmp_path, source=content))
    elif content is not None:
        marker.write_text(content)
    run = Run(settings(), limited=False)
    if there:
        wait(run, marker=marker, source=source, timeout=0)
    else:
        with pytest.raises(DeadlineExceeded, match=r"gave up after 0 s: .*ready"):
            wait(run, marker=marker, source=source, timeout=0)


def test_wait_ends_with_the_run(tmp_path: Path) -> None:
    run = Run(settings(), limited=False)
    timer = threading.Timer(0.1, lambda: run.abort(Interrupted("stop")))
    timer.start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        wait(run, marker=tmp_path / "ready", source=None, timeout=None)
    assert time.monotonic() - began < 30
    timer.join()


def test_verify_ends_with_the_run(served: Served, hub: Hub, target: Path) -> None:
    fetch(served, target)
    run = Run(settings())
    run.abort(Interrupted("stop"))
    with pytest.raises(Interrupted):
        verify(run, marker=target / ".noctaya-ready", deep=True)


def sample(folder: Path, *, source: str = SOURCE, files: tuple[MarkedFile, ...] = ()) -> Marker:
    return Marker(
        source=source,
        revision="r",
        target=str(folder),
        files=files,
        total=sum(file.size for file in files),
        agent="0.5.0",
        completed_at=timestamp(0),
    )
