"""A machine of the cluster: namespaces and a cgroup of this machine, like a node of kind without Docker.

Its network, mounts, hostname and cgroup tree are private; what it leaves there goes with its last process. A
machine is held by one process (`enter.py hold`); every other process joins it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import ClusterError
from .cgroups import Cgroup
from .layout import Layout

ENTER: Final = Path(__file__).with_name("enter.py")
LEAF: Final = "programs"
HOLDER: Final = "machine"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MEMORY: Final = "tmpfs"
OVER: Final = "overlay"
START_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Process:
    """A process that outlives the command which started it, told from a later one with the same pid."""

    pid: int
    started: str
    """Its start time in the kernel's ticks."""

    @property
    def running(self) -> bool:
        """Whether this very process lives; a zombie does not, once the last of its threads has ended."""
        found = _stat(self.pid)
        if found is None or found[1] != self.started:
            return False
        if found[0] == "Z" and not _other_threads(self.pid):
            _reap(self.pid)
            return False
        return True

    @property
    def stopped(self) -> bool:
        """Whether it was stopped by SIGSTOP and may go on."""
        found = _stat(self.pid)
        return found is not None and found == ("T", self.started)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if it lives."""
        if self.running:
            os.kill(self.pid, number)


class Machine:
    """One machine.

    Args:
        name: its hostname.
        layout: of the cluster.
        cgroup: of the cluster; it gets one below.
        private: folders that are its own: path in the machine to a folder of ours, to MEMORY, or to OVER for
            one that begins as this machine's.
        files: single files that say something else in the machine: path to content; not where there is none.
    """

    def __init__(
        self,
        name: str,
        *,
        layout: Layout,
        cgroup: Cgroup,
        private: Mapping[str, Path | str] | None = None,
        files: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.folder = layout.machine(name)
        self._layout = layout
        self._cgroup = cgroup.below(name)
        self._private = dict(private or {})
        self._files = {path: text for path, text in (files or {}).items() if Path(path).exists()}

    @property
    def holder(self) -> Process:
        """The process that keeps the namespaces. Raises ClusterError when it never started."""
        return self.process(HOLDER)

    def start(self) -> None:
        """Make the namespaces."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._cgroup.create()
        self._cgroup.below(LEAF).create()
        argv = [*_enter("hold"), self._plan()]
        log = self._layout.logs / f"{self.name}.log"
        listen, speak = os.pipe()
        with log.open("ab") as errors, os.fdopen(listen, "rb") as said:
            pid = _launch(argv, output=speak, errors=errors.fileno())
            os.close(speak)
            self._record(HOLDER, pid, argv)
            readable, _, _ = select.select([said], [], [], START_SECONDS)
            if not readable or said.readline() != b"ready\n":
                self.kill(HOLDER)
                raise ClusterError(f"machine {self.name} did not start: {last_words(log)}")

    def spawn(self, name: str, argv: Sequence[str | Path]) -> Process:
        """Start a process that stays, its output in logs/<machine>.<name>.log."""
        command = [str(word) for word in argv]
        with self.log(name).open("ab") as output:
            pid = _launch(self.enter(command), output=output.fileno(), errors=output.fileno())
        return self._record(name, pid, command)

    def respawn(self, name: str) -> Process:
        """Start a process again as it was started before."""
        return self.spawn(name, self._read(name)["argv"])

    def kill(self, name: str) -> None:
        """SIGKILL a process of ours and wait until it is gone."""
        process = self.process(name)
        process.signal(signal.SIGKILL)
        end = time.monotonic() + START_SECONDS
        while process.running:
            if time.monotonic() > end:
                raise ClusterError(f"{self.name}: {name} does not end")
            time.sleep(0.01)

    def run(self, argv: Sequence[str | Path], *, stdin: str = "", what: str = "") -> str:
        """Run a command in the machine to its end; its output. Raises ClusterError with what it said."""
        command = [str(word) for word in argv]
        done = subprocess.run(
            self.enter(command), input=stdin, capture_output=True, text=True, env=environment(), check=False
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise ClusterError(f"{self.name}: {what or ' '.join(command)}: {said}")
        return done.stdout

    def answers(self, argv: Sequence[str]) -> bool:
        """Whether a command succeeds."""
        done = subprocess.run(
            self.enter(argv), stdin=subprocess.DEVNULL, capture_output=True, env=environment(), check=False
        )
        return done.returncode == 0

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command in the machine. Raises ClusterError when it is gone."""
        if not self.holder.running:  # its pid may be another's by now
            raise ClusterError(f"machine {self.name} is gone")
        return [*_enter("exec"), self._plan(), str(self.holder.pid), *command]

    def process(self, name: str) -> Process:
        """A process by its name. Raises ClusterError when there never was one."""
        found = self._read(name)
        return Process(found["pid"], found["started"])

    def known(self, name: str) -> bool:
        """Whether a process of this name was ever started."""
        return self._file(name).exists()

    def programs(self) -> list[str]:
        """Names of the processes that were started, without the one that holds the machine."""
        prefix = f"{self.name}."
        names = (file.stem for file in sorted(self._layout.processes.glob(f"{prefix}*.json")))
        return [name.removeprefix(prefix) for name in names if name != prefix + HOLDER]

    def log(self, name: str) -> Path:
        """The output of a process."""
        return self._layout.logs / f"{self.name}.{name}.log"

    def _plan(self) -> str:
        for number, (_, content) in enumerate(self._files.items()):
            file = self.folder / "files" / str(number)
            if not file.exists():
                file.parent.mkdir(exist_ok=True)
                file.write_text(content)
        return json.dumps(
            {
                "hostname": self.name,
                "cgroups": [str(folder) for folder in self._cgroup.folders],
                "leaf": LEAF,
                "mounts": self._mounts(),
                "state": str(self._layout.state),
            }
        )

    def _mounts(self) -> list[tuple[str, str, str, str]]:
        mounts = [("sysfs", "/sys", "sysfs", "")]
        hierarchies = self._cgroup.mounted
        if all(str(each.folder) != "/sys/fs/cgroup" for each in hierarchies):
            mounts.append(("tmpfs", "/sys/fs/cgroup", "tmpfs", "mode=755"))
        mounts += [(each.kind, str(each.folder), each.kind, each.options) for each in hierarchies]
        for target, folder in self._private.items():
            if isinstance(folder, str):
                mounts.append((folder, target, folder, "mode=755"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                mounts.append((str(folder), target, "bind", ""))
        for number, target in enumerate(self._files):
            mounts.append((str(self.folder / "files" / str(number)), target, "bind", ""))
        return mounts

    def _file(self, name: str) -> Path:
        return self._layout.processes / f"{self.name}.{name}.json"

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._file(name).read_text())
        except FileNotFoundError as error:
            raise ClusterError(f"{self.name} has no process {name}") from error
        return found

    def _record(self, name: str, pid: int, argv: Sequence[str]) -> Process:
        found = _stat(pid)
        started = found[1] if found else ""
        file = self._file(name)
        partial = file.with_suffix(".new")
        partial.write_text(json.dumps({"pid": pid, "started": started, "argv": list(argv)}))
        partial.replace(file)
        return Process(pid, started)


def environment() -> dict[str, str]:
    """For processes of the cluster: nothing of the caller's but where programs are."""
    return {"PATH": PATH, "HOME": str(Path.home()), "LANG": "C.UTF-8"}


def last_words(log: Path, lines: int = 8) -> str:
    """The end of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _launch(argv: Sequence[str], *, output: int, errors: int) -> int:
    """Start a process that is not tied to us; its pid. subprocess would warn of leaving it alone."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, errors, 2),
    ]
    return os.posix_spawn(argv[0], list(argv), environment(), file_actions=files, setsid=True)


def _enter(mode: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(ENTER), mode]


def _reap(pid: int) -> None:
    """Take leave of a process that has ended, if it was started by us."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # by another command
        return


def _other_threads(pid: int) -> bool:
    """Whether threads besides the first live on: as long as one does, files and ports stay open."""
    try:
        return any(task.name != str(pid) for task in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return False


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start time of a process, None when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], fields[19]
