"""Waiting longer after every failure, never in step with others."""

from __future__ import annotations

import random


class Backoff:
    """Delays that double from `base` to `cap` seconds, each shortened by up to half at random.

    The random part keeps the watches of one process, and the replicas of one Deployment, from returning to a
    server that came back all at once.
    """

    def __init__(self, *, base: float, cap: float, rng: random.Random) -> None:
        self._base = base
        self._cap = cap
        self._rng = rng
        self._failures = 0

    @property
    def failures(self) -> int:
        """Failures since the last reset."""
        return self._failures

    def after_failure(self, *, at_least: float | None = None) -> float:
        """Count one failure and say how many seconds to wait; `at_least` is what the server asked for."""
        delay = min(self._cap, self._base * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return max(delay * self._rng.uniform(0.5, 1.0), at_least or 0.0)

    def reset(self) -> None:
        """It worked."""
        self._failures = 0
