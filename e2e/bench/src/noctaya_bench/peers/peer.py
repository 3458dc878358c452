"""What every measured proxy has: a name, a port, and the processes whose CPU and memory count as its own."""

from __future__ import annotations

from dataclasses import dataclass

from .. import procfs


@dataclass(frozen=True, slots=True)
class Peer:
    """A running proxy, or the backend itself when measured directly."""

    name: str
    port: int
    pids: tuple[int, ...]

    def cpu_seconds(self) -> float:
        return procfs.cpu_seconds(self.pids)

    def rss_bytes(self) -> int:
        return procfs.rss_bytes(self.pids)
