"""The cluster's own cgroup: where its processes are found, whatever became of those who started them.

Works with version 1, version 2 and the mix of both: one folder below the root of each mounted hierarchy.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import ClusterError

MOUNTS: Final = Path("/proc/self/mountinfo")
KILL_SECONDS: Final = 20.0
SHARES: Final = {"cpu.shares": 1024, "cpu.weight": 100}
"""Where each version says how much processor time a group gets, and what a process or new group counts."""
CONTROLLERS: Final = {"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}
"""What containers are limited by."""


@dataclass(frozen=True)
class Hierarchy:
    """A mounted cgroup filesystem."""

    folder: Path
    kind: str
    """`cgroup` or `cgroup2`."""
    options: str
    """For mounting it once more: the controllers or the name."""


def hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The hierarchies that a mountinfo file names, each once."""
    found: dict[tuple[str, str], Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            own = [word for word in options.split(",") if word not in {"rw", "ro", "nsdelegate"}]
            named = ",".join(own) if kind == "cgroup" else ""
            folder = Path(before.split(" ")[4])
            found.setdefault((kind, named), Hierarchy(folder, kind, named))
    return list(found.values())


class Cgroup:
    """A cgroup of ours in every hierarchy.

    Args:
        name: of the folder below each root; a path with `/` for one inside another.
        mounted: the hierarchies of this machine.
    """

    def __init__(self, name: str, mounted: list[Hierarchy]) -> None:
        self.name = name
        self._mounted = mounted

    @classmethod
    def of_this_machine(cls, name: str) -> Cgroup:
        """With the hierarchies mounted here. Raises ClusterError when there are none."""
        mounted = hierarchies(MOUNTS.read_text())
        if not mounted:
            raise ClusterError(
                "no cgroup filesystem is mounted; the host provider needs one (/sys/fs/cgroup)"
            )
        return cls(name, mounted)

    @property
    def folders(self) -> list[Path]:
        """Its folder in each hierarchy."""
        return [each.folder / self.name for each in self._mounted]

    @property
    def mounted(self) -> list[Hierarchy]:
        """The hierarchies."""
        return self._mounted

    def below(self, name: str) -> Cgroup:
        """One inside this one."""
        return Cgroup(f"{self.name}/{name}", self._mounted)

    def create(self) -> None:
        """Make it, parents too."""
        alone = all(each.kind == "cgroup2" for each in self._mounted)
        for hierarchy in self._mounted:
            path = hierarchy.folder
            for part in self.name.split("/"):
                parent, path = path, path / part
                if alone:
                    _hand_down_controllers(parent)
                path.mkdir(exist_ok=True)
                _inherit_cpuset(parent, path)

    def weigh(self, times: int) -> None:
        """Give it the processor time of that many processes: a group counts as one, however full it is."""
        for folder in self.folders:
            for name, of_one in SHARES.items():
                if (folder / name).exists():
                    (folder / name).write_text(str(of_one * times))

    def pids(self) -> set[int]:
        """Every process in it or below."""
        found: set[int] = set()
        for root in self.folders:
            for folder, _, _ in os.walk(root):
                found.update(_pids(Path(folder)))
        return found

    def kill(self) -> None:
        """SIGKILL until it is empty. Raises ClusterError naming what does not go."""
        end = time.monotonic() + KILL_SECONDS
        while pids := self.pids():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:  # ended meanwhile
                    continue
            if time.monotonic() > end:
                raise ClusterError(f"processes that SIGKILL does not end: {sorted(pids)}")
            time.sleep(0.02)

    def remove(self) -> None:
        """Kill everything in it and remove it; nothing to do when it is not there."""
        end = time.monotonic() + KILL_SECONDS
        while True:
            self.kill()
            left = [folder for folder in self.folders if not _removed(folder)]
            if not left:
                return
            if time.monotonic() > end:
                raise ClusterError(f"cgroups that can't be removed: {', '.join(map(str, left))}")
            time.sleep(0.02)


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except (FileNotFoundError, OSError) as error:
        if isinstance(error, FileNotFoundError) or not folder.exists():
            return []
        raise


def _hand_down_controllers(folder: Path) -> None:
    """In pure version 2 a cgroup has the controllers that its parent hands down."""
    control = folder / "cgroup.subtree_control"
    offered = set((folder / "cgroup.controllers").read_text().split())
    for name in sorted((offered & CONTROLLERS) - set(control.read_text().split())):
        control.write_text(f"+{name}")


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """A new cpuset of version 1 has no processors and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = child / name
        if file.exists() and (parent / name).exists() and not file.read_text().strip():
            inherited = (parent / name).read_text().strip()
            if inherited:
                file.write_text(inherited)


def _removed(folder: Path) -> bool:
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            Path(path).rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # the last process is not quite gone
            return False
    return True
