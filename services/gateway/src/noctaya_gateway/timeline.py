"""The moments of the last activations, and the id of each: requested, told, ready, first byte (behaviour T1).

Exported as wall-clock times, so that whoever watches the rest of the way - KEDA, the scheduler, the
kubelet, or `noctaya run` - can put the gateway's moments on one line with its own. The id is made here,
where an activation begins: it is the trace id of the request that began it, or a random one of the same
form, and names the activation in responses, logs, reports, exemplars, spans and the service's status.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from noctaya_gateway.activation import Outcome

REMEMBERED = 8
"""Activations that are kept, the current one among them."""


class Origin(Protocol):
    """The trace of the request that begins an activation."""

    @property
    def trace_id(self) -> str:
        """32 hex digits."""

    @property
    def root(self) -> str:
        """The `traceparent` of the request's own span."""


@dataclass(slots=True)
class Moments:
    """One activation; times in seconds since 1970, None where it has not come so far."""

    id: str
    """32 lower-case hex digits, as a W3C trace id."""
    traceparent: str
    """Of the request that began it; empty when that was not traced."""
    requested: float
    told: float | None = None
    """When KEDA, or the aggregate scaler, had been given the demand."""
    ready: float | None = None
    first_byte: float | None = None
    ended: float | None = None
    outcome: Outcome | None = None


class ActivationTimeline:
    """The current or last activation, and those before it."""

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._origin: Origin | None = None
        self._kept: deque[Moments] = deque(maxlen=REMEMBERED)

    @property
    def current(self) -> Moments | None:
        """The activation that is going on, or the last one."""
        return self._kept[-1] if self._kept else None

    @property
    def activation_id(self) -> str:
        """The id of the current or last activation; empty before the first."""
        return self._kept[-1].id if self._kept else ""

    @property
    def pending(self) -> Moments | None:
        """The activation that is going on; None when none is."""
        current = self.current
        return current if current is not None and current.outcome is None else None

    def id_after(self, earlier: Moments | None) -> str:
        """The id of the activation that began after `earlier` was the last one; empty when none did."""
        current = self.current
        return current.id if current is not None and current is not earlier else ""

    @contextlib.contextmanager
    def asked_by(self, origin: Origin | None) -> Iterator[None]:
        """A request asks for a backend: an activation that begins inside gets the request's trace id."""
        self._origin = origin
        try:
            yield
        finally:
            self._origin = None

    def begun(self) -> None:
        """An activation began."""
        origin = self._origin
        if origin is not None and all(origin.trace_id != each.id for each in self._kept):
            kept = Moments(origin.trace_id, origin.root, self._wall())
        else:
            # A trace in which two requests woke the model: one id must not stand for two activations.
            kept = Moments(_new_id(), "" if origin is None else origin.root, self._wall())
        self._kept.append(kept)

    def told(self, activation: Moments | None) -> None:
        """The demand of an activation, if there is one, was handed over; the first time counts."""
        if activation is not None and activation.outcome is None and activation.told is None:
            activation.told = self._wall()

    def ended(self, outcome: Outcome, _why: str) -> None:
        """The activation is over; only readiness is a moment of its own."""
        if (pending := self.pending) is not None:
            pending.outcome, pending.ended = outcome, self._wall()
            if outcome is Outcome.READY:
                pending.ready = pending.ended

    def first_byte(self, activation_id: str | None = None) -> None:
        """The backend began to answer a request that had waited; the first one counts.

        `activation_id` is the activation it had waited for, None for the last one.
        """
        for kept in reversed(self._kept):
            if activation_id is None or kept.id == activation_id:
                if kept.ready is not None and kept.first_byte is None:
                    kept.first_byte = self._wall()
                return

    def moments(self) -> dict[str, float]:
        """Each moment of the current or last activation that has been reached, by name."""
        current = self.current
        if current is None:
            return {}
        reached = {
            "requested": current.requested,
            "told": current.told,
            "ready": current.ready,
            "first_byte": current.first_byte,
        }
        return {name: moment for name, moment in reached.items() if moment is not None}

    def __iter__(self) -> Iterator[Moments]:
        """The activations that are remembered, the newest first."""
        return reversed(self._kept)

    @property
    def now(self) -> float:
        """The clock that the moments were read from, so that a reader can allow for its own."""
        return self._wall()


def _new_id() -> str:
    return f"{secrets.randbelow(2**128 - 1) + 1:032x}"  # all zeros is no trace id
