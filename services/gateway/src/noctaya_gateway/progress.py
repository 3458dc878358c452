"""How far a cold start has come, said to the client in the comments of its held stream.

What is told is what the gateway itself knows: that weights are being downloaded and for about how long, that
no pod is there yet, that one is there and not ready, that it is this request's turn soon. One line, no blank
line after it: parsers of event streams drop it (behaviour G1).
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    """What a held request waits for."""

    PREWARMING = "prewarming"
    """The weights are being downloaded."""
    ASLEEP = "asleep"
    """The service is kept asleep for a while yet."""
    STARTING = "starting"
    """No pod of the backend is known: it is being scaled, scheduled, or its image pulled."""
    LOADING = "loading"
    """A pod is known and not ready: the model is being loaded."""
    RELEASING = "releasing"
    """A backend is ready; the line moves."""


def phase_of(*, ready: bool, unready: int) -> Phase:
    """The phase of a start: is a backend ready, and how many pods are known that are not."""
    if ready:
        return Phase.RELEASING
    return Phase.LOADING if unready else Phase.STARTING


def render_progress(phase: Phase, *, waited: float, left: float | None = None, message: str = "") -> bytes:
    """The comment line.

    Args:
        phase: what is waited for.
        waited: seconds this request has waited.
        left: seconds until the phase is expected to be over; None when nobody knows.
        message: what is known besides, such as how large the weights are.
    """
    told: dict[str, Any] = {"phase": phase.value, "seconds": round(waited, 1)}
    if left is not None:
        told["secondsLeft"] = round(left)
    if message:
        told["message"] = message
    return b": progress %b\n" % json.dumps(told).encode("ascii")
