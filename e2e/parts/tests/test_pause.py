"""The pause program, for real: a second of compiling."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from noctaya_parts import catalogue, ensure
from noctaya_parts.gotool import GO_DEFAULT

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(scope="module")
def pause(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Built into a cache of its own, by Go as it is here."""
    if shutil.which("go") is None and not GO_DEFAULT.exists():
        pytest.fail("Go is needed for this test")
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setattr(catalogue, "cache_root", lambda: folder)
        yield ensure("pause")["pause"]


LAUNCHER = """
import os, subprocess, sys
# One has ended already and is reaped at the start, the others end when stdin does.
started = [subprocess.Popen([name]) for name in ("true", "cat", "cat", "cat")]
os.execv(sys.argv[1], ["pause"])
"""


@pytest.fixture
def paused(pause: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A pause program with three children that end when its stdin is closed."""
    with subprocess.Popen([sys.executable, "-c", LAUNCHER, str(pause)], stdin=subprocess.PIPE) as process:
        name = Path(f"/proc/{process.pid}/comm")
        until(lambda: name.read_text() == "pause\n" and children(process.pid) == 3)
        yield process
        process.kill()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children(pid: int) -> int:
    """How many it has, those that ended and were not reaped included."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_what_ends_in_the_pod_is_reaped(paused: subprocess.Popen[bytes]) -> None:
    assert paused.stdin is not None
    paused.stdin.close()
    until(lambda: children(paused.pid) == 0)
    assert paused.poll() is None, "the pod's namespaces are held on"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pod_that_is_stopped_ends_at_once(paused: subprocess.Popen[bytes], number: int) -> None:
    paused.send_signal(number)
    assert paused.wait(30) == 0


def test_it_links_nothing_and_knows_its_version(pause: Path) -> None:
    assert subprocess.run([pause, "-v"], capture_output=True, text=True, check=True).stdout == "pause 1\n"
    assert b"ld-linux" not in pause.read_bytes()
