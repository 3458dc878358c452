"""The files of one private engine, all below one folder, and the arguments its two programs get.

Nothing here is shared with the machine's own Docker or containerd: other sockets, other roots, another
cgroup, no bridge, no firewall rule, no sysctl. Builds use the machine's network as it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KEPT_BUILD_CACHE: Final = "8GB"
"""What the builder may keep between runs; it drops the oldest steps above that."""

CONTAINERD_PLUGINS_LEFT_OUT: Final = (
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.tracing",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
)
MAX_SOCKET_PATH: Final = 107
"""What Linux takes."""
PRIVATE: Final = Path("/run/containerd")
"""Fixed in containerd for the sockets of its shims. The keeper covers it by an empty file system that nobody
else sees, so all that lives only as long as the engine is there: another containerd's files are not in reach,
and no path is too long for a socket.
"""


@dataclass(frozen=True)
class Layout:
    """Paths below one folder."""

    folder: Path

    @property
    def run(self) -> Path:
        """The engine's socket and its configuration; made anew at each start."""
        return self.folder / "run"

    @property
    def docker_socket(self) -> Path:
        """Where the engine answers."""
        return self.run / "docker.sock"

    @property
    def containerd_socket(self) -> Path:
        """Where its containerd answers, within the engine's own mount namespace."""
        return PRIVATE / "containerd.sock"

    @property
    def logs(self) -> Path:
        """`keeper.log`, `containerd.log`, `dockerd.log` of the last start."""
        return self.folder / "log"

    @property
    def users_lock(self) -> Path:
        """Held shared by everyone who uses the engine."""
        return self.folder / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        """Held by the keeper while it lives."""
        return self.folder / "keeper.lock"

    @property
    def start_lock(self) -> Path:
        """Held by whoever looks whether the engine must be started."""
        return self.folder / "start.lock"

    @property
    def client_config(self) -> Path:
        """An empty configuration of the docker command: no contexts, no credentials of the user."""
        return self.folder / "client"

    @property
    def cgroup(self) -> str:
        """Name of the cgroup that holds every container of this engine and nothing else."""
        return f"noctaya-engine-{hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]}"

    def containerd_config(self) -> str:
        """TOML for containerd."""
        left_out = json.dumps(list(CONTAINERD_PLUGINS_LEFT_OUT))
        return "\n".join(
            [
                "version = 2",
                f"root = {json.dumps(str(self.folder / 'containerd'))}",
                f"state = {json.dumps(str(PRIVATE / 'state'))}",
                f"disabled_plugins = {left_out}",
                "[grpc]",
                f"address = {json.dumps(str(self.containerd_socket))}",
                "[debug]",
                'level = "warn"',
                "",
            ]
        )

    def containerd_command(self) -> list[str]:
        """The program and its arguments."""
        return ["containerd", "--config", str(self.run / "containerd.toml")]

    def dockerd_config(self) -> str:
        """JSON for dockerd; a file of our own also keeps it from reading the machine's."""
        return json.dumps(
            {
                "builder": {"gc": {"enabled": True, "defaultKeepStorage": KEPT_BUILD_CACHE}},
                "log-level": "warn",
            }
        )

    def dockerd_command(self) -> list[str]:
        """The program and its arguments."""
        return [
            "dockerd",
            "--config-file",
            str(self.run / "dockerd.json"),
            "--data-root",
            str(self.folder / "data"),
            "--exec-root",
            str(PRIVATE / "docker"),
            "--pidfile",
            str(PRIVATE / "dockerd.pid"),
            "--host",
            f"unix://{self.docker_socket}",
            "--containerd",
            str(self.containerd_socket),
            "--cgroup-parent",
            f"/{self.cgroup}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
            "--ip-masq=false",
        ]
