"""When the moments of the last activation were: requested, ready, first byte (behaviour T1).

Exported as wall-clock times, so that whoever watches the rest of the way - KEDA, the scheduler, the
kubelet, or `noctaya run` - can put the gateway's moments on one line with its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from noctaya_gateway.activation import Outcome


class ActivationTimeline:
    """Moments of the current or last activation, in seconds since 1970; empty before the first."""

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._moments: dict[str, float] = {}

    def begun(self) -> None:
        """A cold request began an activation."""
        self._moments = {"requested": self._wall()}

    def ended(self, outcome: Outcome, _why: str) -> None:
        """The activation is over; only readiness is a moment of its own."""
        if outcome is Outcome.READY:
            self._moments["ready"] = self._wall()

    def first_byte(self) -> None:
        """The backend began to answer a request that had waited; the first one counts."""
        if "ready" in self._moments and "first_byte" not in self._moments:
            self._moments["first_byte"] = self._wall()

    def moments(self) -> dict[str, float]:
        """Each moment that has been reached, by name."""
        return dict(self._moments)
