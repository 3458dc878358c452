"""What happens, as a stream of facts: state changes of services and replicas.

Everything that shows something to a person or a program (live view, plain lines, the JSON file, timelines)
is a subscriber of one `EventLog`; nothing that runs a service knows how it is shown.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TextIO


class EventKind(StrEnum):
    """Names of events; part of the `--events` format."""

    SERVICE_STARTED = "service_started"
    SERVICE_STOPPED = "service_stopped"
    GATEWAY_STARTED = "gateway_started"
    GATEWAY_EXITED = "gateway_exited"
    NOTE = "note"
    KEDA_CONNECTED = "keda_connected"
    KEDA_DISCONNECTED = "keda_disconnected"
    SCALER_LOST = "scaler_lost"
    DEMAND = "demand"
    REQUESTED = "requested"
    ACTIVATED = "activated"
    SCALED = "scaled"
    REPLICA_STARTING = "replica_starting"
    PROCESS_STARTED = "process_started"
    REPLICA_READY = "replica_ready"
    REPLICA_UNREADY = "replica_unready"
    REPLICA_DRAINING = "replica_draining"
    REPLICA_STOPPING = "replica_stopping"
    REPLICA_EXITED = "replica_exited"
    REPLICA_BACKOFF = "replica_backoff"
    REPLICA_GONE = "replica_gone"
    ACTIVATION_DOOMED = "activation_doomed"
    FIRST_BYTE = "first_byte"
    PHASE = "phase"


@dataclass(frozen=True, slots=True)
class Event:
    """One fact. `at` is time.monotonic() (shared by all processes of a boot), `wall` seconds since 1970."""

    kind: EventKind
    service: str
    at: float
    wall: float
    replica: str = ""
    details: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> str:
        """One line for the events file."""
        record: dict[str, object] = {"event": self.kind, "service": self.service}
        if self.replica:
            record["replica"] = self.replica
        record |= {"monotonic": round(self.at, 6), "wall": round(self.wall, 6), **self.details}
        return json.dumps(record, ensure_ascii=False)


class EventLog:
    """Passes each event to every subscriber, in order, at once."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, subscriber: Callable[[Event], None]) -> None:
        """`subscriber` is called with every event from now on; it must not raise or block."""
        self._subscribers.append(subscriber)

    def emit(
        self,
        kind: EventKind,
        details: Mapping[str, object] | None = None,
        *,
        service: str,
        replica: str = "",
        wall: float | None = None,
    ) -> None:
        """Publish a fact that happened at `wall`, a Unix time (default: now)."""
        now, wall_now = self._clock(), self._wall()
        moment = wall_now if wall is None else wall
        event = Event(kind, service, now - (wall_now - moment), moment, replica, details or {})
        for subscriber in self._subscribers:
            subscriber(event)


class EventFile:
    """Appends every event to a file as one line of JSON, flushed at once."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if self._file.closed:
            return
        try:
            self._file.write(event.as_json() + "\n")
            self._file.flush()
        except OSError as error:  # a full disk ends the file, not the services
            print(f"noctaya: events are written no more: {error.strerror}", file=sys.stderr)
            with contextlib.suppress(OSError):
                self._file.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
