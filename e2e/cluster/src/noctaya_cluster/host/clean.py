"""Removing a host cluster: from whatever state it is in, and nothing but it.

What is removed is found by names that follow from the state folder, not by what some command remembered:
processes by their cgroup, the link by its name, files by the folder. Mounts, bridges, rules and pods'
networks are in namespaces that end with the processes.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from ..errors import ClusterError
from . import network
from .cgroups import Cgroup
from .layout import Layout

FILES_SECONDS: Final = 20.0


def clean(layout: Layout) -> None:
    """Remove everything. Raises ClusterError naming what does not go."""
    Cgroup.of_this_machine(layout.cgroup).remove()
    network.disconnect(layout)
    mounted = mounts_below(layout.state, Path("/proc/self/mountinfo").read_text())
    if mounted:  # never ours, whose mounts are in namespaces; what is mounted there is not ours to delete
        raise ClusterError(f"something is mounted below {layout.state}: {', '.join(mounted)}; unmount it")
    _remove_tree(layout.state)


def mounts_below(folder: Path, mountinfo: str) -> list[str]:
    """Mount points at or below a folder."""
    points = (line.split(" ")[4].replace("\\040", " ") for line in mountinfo.splitlines())
    return sorted(point for point in points if Path(point).is_relative_to(folder))


def _remove_tree(folder: Path) -> None:
    """The record goes last: until then the next attempt knows what there was."""
    end = time.monotonic() + FILES_SECONDS
    while folder.exists():
        try:
            for child in sorted(folder.iterdir(), key=lambda child: child.name == "cluster.json"):
                if child.is_dir() and not child.is_symlink():
                    shutil.rmtree(child)
                else:
                    child.unlink()
            folder.rmdir()
        except OSError as error:  # a namespace that still ends holds a mount point
            if time.monotonic() > end:
                raise ClusterError(f"{folder} can't be removed: {error}") from error
            time.sleep(0.1)
