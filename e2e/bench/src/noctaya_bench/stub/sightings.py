"""What the stub has seen, with monotonic times that are comparable across the processes of one machine."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Visit:
    """One request that carried a `tag`, as the backend saw it."""

    started: float
    received: int = 0
    closed: float | None = None


@dataclass(slots=True)
class Sightings:
    """Shared by all connections of the stub."""

    ready: bool
    connections: int = 0
    requests: int = 0
    last_request: float = 0.0
    finishes: int = 0
    """How often the bench asked for the end of all streams."""
    visits: dict[str, Visit] = field(default_factory=dict)

    def count_request(self) -> None:
        self.requests += 1
        self.last_request = time.monotonic()

    def reset(self) -> None:
        self.requests = 0
        self.last_request = 0.0
        self.visits.clear()

    def snapshot(self) -> dict[str, object]:
        return {"now": time.monotonic(), **asdict(self)}
