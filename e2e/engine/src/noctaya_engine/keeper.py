"""Process 1 of the private engine: starts it, reaps, and ends it when nobody uses it any more.

    unshare --mount --pid ... python -m noctaya_engine.keeper FOLDER

It runs in a process and a mount namespace of its own. So whatever way it ends, `kill -9` included, the
kernel kills containerd, dockerd, every shim and every container with it, and drops every mount they made:
there is nothing left that a next start would have to hunt for, save empty cgroups, which it removes.
Users of the engine hold a shared lock that the kernel frees when they die, so no count can go wrong
either.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import IO, Final

from noctaya_parts.locking import take_if_unused

from noctaya_engine.layout import PRIVATE, Layout

POLL_SECONDS: Final = 0.25
STOP_SECONDS: Final = 15.0
"""For dockerd to end its containers before it is killed."""
CGROUPS: Final = Path("/sys/fs/cgroup")


class Keeper:
    """One run of the engine."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._asked_to_stop = False
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> int:
        """Serve until the last user is gone; 0 then, 1 when a program of the engine ended by itself."""
        signal.signal(signal.SIGTERM, self._stop_asked)
        signal.signal(signal.SIGINT, self._stop_asked)
        self._prepare()
        self._start("containerd", self._layout.containerd_command())
        self._wait_for_socket(self._layout.containerd_socket)
        self._start("dockerd", self._layout.dockerd_command())
        lock: IO[str] | None = None
        try:
            while not self._asked_to_stop and lock is None:
                time.sleep(POLL_SECONDS)
                self._reap()
                ended = [name for name, child in self._children.items() if child.poll() is not None]
                if ended:
                    say(f"{ended[0]} ended by itself; see {self._layout.logs / ended[0]}.log")
                    return 1
                lock = take_if_unused(self._layout.users_lock)
            return 0
        finally:
            self._end()

    def _prepare(self) -> None:
        shutil.rmtree(self._layout.run, ignore_errors=True)
        remove_cgroups(self._layout.cgroup)
        for folder in (self._layout.run, self._layout.logs, self._layout.folder / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self._layout.run.chmod(0o700)
        (self._layout.run / "containerd.toml").write_text(self._layout.containerd_config())
        (self._layout.run / "dockerd.json").write_text(self._layout.dockerd_config())
        PRIVATE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "noctaya-engine", PRIVATE], check=True)

    def _start(self, name: str, command: list[str]) -> None:
        env = {**os.environ, "DOCKER_TMPDIR": str(self._layout.folder / "tmp")}
        with (self._layout.logs / f"{name}.log").open("wb") as log:
            self._children[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env
            )

    def _wait_for_socket(self, socket: Path) -> None:
        """Dockerd gives up soon when it finds no containerd, so it is started after it."""
        while not socket.exists() and not self._asked_to_stop:
            if any(child.poll() is not None for child in self._children.values()):
                return
            time.sleep(0.02)

    def _reap(self) -> None:
        """Orphans of the namespace are ours; our two children are left to `poll`."""
        ours = {child.pid for child in self._children.values()}
        while (found := _ended()) is not None and found not in ours:
            os.waitpid(found, 0)

    def _stop_asked(self, _number: int, _frame: FrameType | None) -> None:
        self._asked_to_stop = True

    def _end(self) -> None:
        for name in ("dockerd", "containerd"):
            child = self._children.get(name)
            if child is None or child.poll() is not None:
                continue
            child.terminate()
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"{name} did not end within {STOP_SECONDS:g} s and is killed")
                child.kill()
                child.wait()
        shutil.rmtree(self._layout.run, ignore_errors=True)
        remove_cgroups(self._layout.cgroup)


def _ended() -> int | None:
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def remove_cgroups(name: str, root: Path = CGROUPS) -> None:
    """Remove the empty cgroups of that name, of each hierarchy; one still in use stays."""
    for top in (root / name, *root.glob(f"*/{name}")):
        folders = [Path(folder) for folder, _, _ in os.walk(top, topdown=False)]
        for folder in folders:
            try:
                folder.rmdir()
            except OSError as error:
                say(f"{folder} stays: {error.strerror}")


def say(text: str) -> None:
    """One line for `keeper.log`."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Entry point; the only argument is the folder of the engine."""
    sys.exit(Keeper(Layout(Path(sys.argv[1]))).run())


if __name__ == "__main__":
    main()
