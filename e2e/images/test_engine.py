"""The private engine serves those who use it, ends with the last one, however that ends, leaves nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import noctaya_parts
import pytest
from noctaya_engine import Engine, EngineUnavailable
from noctaya_engine.engine import answers
from noctaya_engine.keeper import CGROUPS, remove_cgroups
from noctaya_engine.layout import Layout

pytestmark = pytest.mark.private_engine

USER = """
import sys
from pathlib import Path
from noctaya_engine.engine import Engine
with Engine.running(folder=Path(sys.argv[1]), report=lambda line: None) as engine:
    print("ready", flush=True)
    sys.stdin.read()
"""
ENDS_WITHIN = 60
CONTAINER = "noctaya/trial-engine:1"


class User:
    """A process that uses the engine until it is told to leave, or killed."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def leave(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(tmp_path / "engine")
    yield layout
    try:
        await_that(lambda: not pids(layout))
    finally:
        for pid in pids(layout):
            with contextlib.suppress(ProcessLookupError):  # it ends by itself meanwhile
                os.kill(pid, signal.SIGKILL)
    remove_cgroups(layout.cgroup)


def pids(layout: Layout) -> list[int]:
    """Processes that were started with a path of this engine, and are no users of it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(layout.folder).encode() in command and b"Engine.running" not in command:
            found.append(int(entry.name))
    return found


def cgroups(layout: Layout) -> list[Path]:
    return [path for path in (CGROUPS / layout.cgroup, *CGROUPS.glob(f"*/{layout.cgroup}")) if path.exists()]


def await_that(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENDS_WITHIN
    while not holds():
        assert time.monotonic() < deadline, f"did not happen within {ENDS_WITHIN} s"
        time.sleep(0.05)


def run_container(engine: Engine, folder: Path) -> str:
    """A container that runs until it is stopped; its process's id on this machine."""
    root = folder / "root.tar"
    with tarfile.open(root, "w") as tar:
        tar.add(noctaya_parts.ensure("pause")["pause"], "pause")
    engine.import_root(root, CONTAINER)
    return engine.docker("run", "--detach", "--network=none", CONTAINER, "/pause")


def test_it_serves_all_who_use_it_and_ends_with_the_last(layout: Layout) -> None:
    first, second = User(layout.folder), User(layout.folder)
    keepers = [pid for pid in pids(layout) if "keeper" in Path(f"/proc/{pid}/cmdline").read_text()]
    first.leave()
    assert answers(layout.docker_socket)
    assert set(keepers) <= set(pids(layout)), "the second user joined the engine of the first"
    second.leave()
    await_that(lambda: not pids(layout))
    assert not layout.run.exists()


def test_it_ends_with_users_that_are_killed_and_takes_their_containers_along(
    layout: Layout, tmp_path: Path
) -> None:
    killed = User(layout.folder)
    with Engine.running(folder=layout.folder) as engine:
        run_container(engine, tmp_path)
        assert cgroups(layout)
    killed.kill()
    await_that(lambda: not pids(layout))
    assert not cgroups(layout)
    assert str(layout.folder) not in Path("/proc/self/mounts").read_text()


def test_after_its_own_violent_death_nothing_runs_and_the_next_start_finds_a_clean_state(
    layout: Layout, tmp_path: Path
) -> None:
    user = User(layout.folder)
    with Engine.running(folder=layout.folder) as engine:
        run_container(engine, tmp_path)
    for pid in pids(layout):
        if b"noctaya_engine.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    await_that(lambda: not pids(layout))
    with Engine.running(folder=layout.folder) as engine:
        assert engine.has(CONTAINER)
        assert engine.docker("ps", "--all", "--quiet") == ""
    user.kill()
    await_that(lambda: not pids(layout))
    assert not cgroups(layout)


def test_two_engines_live_side_by_side_and_one_ends_without_the_other(tmp_path: Path, layout: Layout) -> None:
    other = Layout(tmp_path / "other")
    with Engine.running(folder=layout.folder) as engine:
        container = run_container(engine, tmp_path)
        with Engine.running(folder=other.folder) as second:
            assert not second.has(CONTAINER)
            assert second.docker("ps", "--quiet") == ""
        await_that(lambda: not pids(other))
        assert engine.docker("inspect", "--format={{.State.Running}}", container) == "true"


def test_a_start_that_fails_says_why(layout: Layout) -> None:
    layout.folder.mkdir()
    (layout.folder / "containerd").write_text("a file where a folder belongs")
    with (
        pytest.raises(EngineUnavailable, match=r"(?s)did not start.*not a directory"),
        Engine.running(folder=layout.folder),
    ):
        pass
    await_that(lambda: not pids(layout))


def test_a_path_too_long_for_a_socket_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineUnavailable, match="XDG_CACHE_HOME"),
        Engine.running(folder=tmp_path / ("x" * 100)),
    ):
        pass
