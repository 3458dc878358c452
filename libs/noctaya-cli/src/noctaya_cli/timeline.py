"""The timeline of an activation: from the request that found no replica to the first byte of the answer.
Pure.

A recorder listens to the events of all services and keeps, for each, the current or last activation.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from noctaya_cli.events import Event, EventKind


class Mark(StrEnum):
    """Moments of an activation, in order."""

    REQUESTED = "requested"
    ACTIVATED = "activated"
    PROCESS_STARTED = "process started"
    READY = "ready"
    FIRST_BYTE = "first byte"


MARK_OF = {
    EventKind.REQUESTED: Mark.REQUESTED,
    EventKind.ACTIVATED: Mark.ACTIVATED,
    EventKind.PROCESS_STARTED: Mark.PROCESS_STARTED,
    EventKind.REPLICA_READY: Mark.READY,
    EventKind.FIRST_BYTE: Mark.FIRST_BYTE,
}


@dataclass(slots=True)
class Activation:
    """Moments seen so far, in seconds of time.monotonic()."""

    marks: dict[Mark, float] = field(default_factory=dict)

    def add(self, mark: Mark, at: float) -> None:
        """Keep the first moment of each kind; a restarted process doesn't move the start."""
        self.marks.setdefault(mark, at)

    @property
    def ready(self) -> bool:
        """True once a replica has been ready."""
        return Mark.READY in self.marks

    def steps(self) -> list[tuple[Mark, float]]:
        """Marks in time order with the seconds since the first one."""
        ordered = sorted(self.marks.items(), key=lambda item: (item[1], list(Mark).index(item[0])))
        return [(mark, at - ordered[0][1]) for mark, at in ordered]

    def elapsed(self, now: float) -> float:
        """Seconds from the first mark to readiness or the first byte, to `now` while still on the way."""
        first = min(self.marks.values())
        last = self.marks.get(Mark.FIRST_BYTE, self.marks.get(Mark.READY, now))
        return max(0.0, last - first)


class TimelineRecorder:
    """Subscriber of the event log."""

    def __init__(self) -> None:
        self._activations: dict[str, Activation] = {}

    def __call__(self, event: Event) -> None:
        """Take one event into account."""
        if event.kind is EventKind.ACTIVATED:
            self._activations[event.service] = Activation()
        mark = MARK_OF.get(event.kind)
        activation = self._activations.get(event.service)
        if mark is not None and activation is not None:
            activation.add(mark, event.at)

    def last(self, service: str) -> Activation | None:
        """The current or last activation of a service; None before the first."""
        return self._activations.get(service)
