"""Nodes of the host cluster as they are on this machine: a disk of their own, other settings of a kubelet."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from noctaya_cluster import Cluster
from noctaya_scenarios.scene import holds
from noctaya_scenarios.waiting import until

KUBELET: Final = "kubelet"
DISKS_AT: Final = Path("/run/noctaya-chaos")
"""In the node. Its /run is memory of its own, so nothing of this machine is ever mounted over or filled."""
READY_SECONDS: Final = 60.0
BLOCK: Final = bytes(1 << 20)


class NoSuchNode(Exception):
    """A node's kubelet is not a process of this machine."""


class SmallDisk:
    """A file system of a fixed size in a node.

    Args:
        path: in the node.
        root: the node's files, as this machine sees them.
    """

    def __init__(self, path: Path, *, root: Path) -> None:
        self.path = path
        self._here = root / path.relative_to("/")

    @property
    def filler(self) -> Path:
        """The file that takes all the room."""
        return self._here / "filler"

    def fill(self) -> int:
        """Write until nothing more fits; the bytes that were free."""
        with self.filler.open("wb", buffering=0) as file:
            return until_full(file.write)

    def free(self) -> None:
        """Give the room back."""
        self.filler.unlink()


class Node:
    """One node.

    Args:
        cluster: of the provider `host`.
        name: of the node.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self.name = cluster, name

    @property
    def kubelet(self) -> tuple[int, Path]:
        """The kubelet's process id and its configuration file. Raises NoSuchNode."""
        credential = f"--kubeconfig={self._cluster.kubeconfig.parent / 'pki' / self.name}.kubeconfig"
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                words = (process / "cmdline").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if credential in words and Path(words[0]).name == KUBELET:
                (config,) = [word.partition("=")[2] for word in words if word.startswith("--config=")]
                return int(process.name), Path(config)
        raise NoSuchNode(f"no kubelet of {self.name} is on this machine: provider host only")

    @contextmanager
    def small_disk(self, *, size: int) -> Iterator[SmallDisk]:
        """Within the block there is a file system of so many bytes in the node, in memory."""
        pid, _ = self.kubelet
        path = DISKS_AT / "disk"
        self._enter(pid, "mkdir", "-p", str(path))
        self._enter(pid, "mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(path))
        try:
            yield SmallDisk(path, root=Path(f"/proc/{pid}/root"))
        finally:
            self._enter(pid, "umount", "--lazy", str(path))

    @contextmanager
    def configured(self, changes: Mapping[str, Any]) -> Iterator[None]:
        """Within the block the node's kubelet runs with other settings; it is started anew on both ends."""
        _, file = self.kubelet
        before = file.read_text()
        file.write_text(yaml.safe_dump({**yaml.safe_load(before), **changes}))
        try:
            self._restart()
            yield
        finally:
            file.write_text(before)
            self._restart()
            until(self.unpressed, within=READY_SECONDS, what=f"{self.name} has room again")

    def pressed(self) -> bool:
        """Whether the kubelet says that its disk is under pressure."""
        return holds(self._status(), "DiskPressure")

    def unpressed(self) -> bool:
        """Whether the node is ready, without pressure, and takes Pods."""
        status = self._status()
        return holds(status, "Ready") and not holds(status, "DiskPressure")

    def _status(self) -> dict[str, Any]:
        found = self._cluster.kubectl.items("nodes")
        (status,) = [each["status"] for each in found if each["metadata"]["name"] == self.name]
        return dict(status)

    def _restart(self) -> None:
        component = f"{self.name}/{KUBELET}"
        self._cluster.stop_component(component)
        self._cluster.start_component(component)

    @staticmethod
    def _enter(pid: int, *command: str) -> None:
        argv = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", *command]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"


def until_full(write: Callable[[memoryview], int]) -> int:
    """Write until nothing more fits, to the last byte; how many did."""
    written = 0
    block = memoryview(BLOCK)
    while block:
        try:
            written += write(block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            block = block[: len(block) // 2]
    return written
