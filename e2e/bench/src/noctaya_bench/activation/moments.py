"""The moments of a cold start and the phases between them. Pure.

All of them are read from one monotonic clock, that of the bench, when the news arrives: an event of a watch,
a message of the scaler's stream, the first byte of an answer. Kubernetes' own timestamps are whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..figures import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStart:
    """From nothing to a ready Pod; seconds of one clock.

    Attributes:
        written: the Deployment asks for a replica.
        scheduled: the Pod has a node.
        started: the kubelet's Event says that the container has started.
        ready: the Pod's condition Ready is True.
    """

    written: float
    scheduled: float
    started: float
    ready: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """One request that found nothing running.

    Attributes:
        requested: the first byte of the request is sent.
        told: a client of the scaler's stream, as KEDA is one, hears that the service is active.
        pod: what Kubernetes made of it.
        listed: an EndpointSlice of the backend's Service says that the Pod is ready.
        first_byte: of the answer, at the client.
    """

    requested: float
    told: float
    pod: PodStart
    listed: float
    first_byte: float

    @property
    def total(self) -> float:
        """What the client waits."""
        return self.first_byte - self.requested

    @property
    def added(self) -> float:
        """Ours: everything that is neither KEDA's nor Kubernetes' time."""
        return self.before + self.after

    @property
    def before(self) -> float:
        """Ours, before anybody can act: from the request to its demand at the autoscaler."""
        return self.told - self.requested

    @property
    def after(self) -> float:
        """Ours, when all the others are done: from the first endpoint to the first byte."""
        return max(self.first_byte - self.listed, 0.0)

    @property
    def since_ready(self) -> float:
        """From Ready to the first byte, whosever time that is."""
        return self.first_byte - self.pod.ready

    @property
    def keda(self) -> float:
        """KEDA's, from hearing of demand to having written the replica."""
        return self.pod.written - self.told


OURS: Final = "ours"
KEDA: Final = "KEDA"
KUBERNETES: Final = "Kubernetes"


@dataclass(frozen=True, slots=True)
class Phase:
    """One row of the table; seconds of every cold start, and of every plain scaling if it has this phase."""

    name: str
    whose: str
    seconds: tuple[float, ...]
    plain: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainStart:
    """The same Pod brought up by `kubectl scale` alone; `asked` is when the request was sent."""

    asked: float
    pod: PodStart

    @property
    def total(self) -> float:
        """From the request to Ready."""
        return self.pod.ready - self.asked


def phases(starts: Sequence[ColdStart], plain: Sequence[PlainStart]) -> list[Phase]:
    """The way of a request, in order, and the sums that the promises speak of."""
    return [
        Phase("request to demand at KEDA", OURS, _all(start.before for start in starts)),
        Phase(
            "demand to replica written",
            KEDA,
            _all(start.keda for start in starts),
            _all(each.pod.written - each.asked for each in plain),
        ),
        *(
            Phase(
                name,
                KUBERNETES,
                _all(_between(start.pod, begin, end) for start in starts),
                _all(_between(each.pod, begin, end) for each in plain),
            )
            for name, begin, end in (
                ("replica written to Pod scheduled", "written", "scheduled"),
                ("Pod scheduled to container started", "scheduled", "started"),
                ("container started to Ready", "started", "ready"),
            )
        ),
        Phase("Ready to endpoint", KUBERNETES, _all(start.listed - start.pod.ready for start in starts)),
        Phase("endpoint to first byte", OURS, _all(start.after for start in starts)),
        Phase("added by Noctaya", OURS, _all(start.added for start in starts)),
        Phase("Ready to first byte", "both", _all(start.since_ready for start in starts)),
        Phase(
            "replica written to Ready",
            KUBERNETES,
            _all(_between(start.pod, "written", "ready") for start in starts),
            _all(_between(each.pod, "written", "ready") for each in plain),
        ),
        Phase(
            "request to first byte; plain: `kubectl scale` to Ready",
            "all",
            _all(start.total for start in starts),
            _all(each.total for each in plain),
        ),
    ]


def row(phase: Phase) -> tuple[str, ...]:
    """A row of the table, in milliseconds."""
    ours = [_ms(percentile(phase.seconds, share)) for share in (50, 90, 100)]
    plain = _ms(percentile(phase.plain, 50)) if phase.plain else "-"
    return (phase.name, phase.whose, *ours, plain)


COLUMNS: Final = ("phase", "whose", "p50 ms", "p90 ms", "max ms", "plain p50 ms")


def _between(pod: PodStart, begin: str, end: str) -> float:
    return float(getattr(pod, end) - getattr(pod, begin))


def _all(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(values)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}"
