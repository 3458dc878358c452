"""Where everything of a host cluster lies below its state folder. Nothing of it is anywhere else."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONTROL: Final = "control"
NODES: Final = ("node-1", "node-2")


def default_state() -> Path:
    """The one cluster of this user; `$XDG_CACHE_HOME` moves it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "noctaya" / "cluster" / "state"


@dataclass(frozen=True)
class Layout:
    """Paths and names that follow from the state folder."""

    state: Path

    @property
    def key(self) -> str:
        """Tells this cluster from another with another folder: part of cgroup and link names."""
        return hashlib.sha256(str(self.state.resolve()).encode()).hexdigest()[:6]

    @property
    def cgroup(self) -> str:
        """Name of its cgroup."""
        return f"noctaya-cluster-{self.key}"

    @property
    def link(self) -> str:
        """Name of the network link between this machine and the cluster (at most 15 bytes)."""
        return f"noctaya-{self.key}"

    @property
    def record(self) -> Path:
        """What was chosen for it and what must be undone."""
        return self.state / "cluster.json"

    @property
    def lock(self) -> Path:
        """Held while it is changed; beside the folder, which comes and goes."""
        return self.state.with_name(f"{self.state.name}.lock")

    @property
    def pause(self) -> Path:
        """Held while the API server is paused, by whoever has paused it."""
        return self.state / "pause.lock"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.state / "pki"

    @property
    def logs(self) -> Path:
        """One file a process."""
        return self.state / "logs"

    @property
    def processes(self) -> Path:
        """One file a process: its pid and how to start it again."""
        return self.state / "processes"

    @property
    def volumes(self) -> Path:
        """Data of persistent volumes."""
        return self.state / "volumes"

    def machine(self, name: str) -> Path:
        """The folder of a machine."""
        return self.state / "machines" / name

    def user_config(self, user: str) -> Path:
        """A kubeconfig of a part of the cluster."""
        return self.pki / f"{user}.kubeconfig"
