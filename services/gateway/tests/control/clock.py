"""A clock with timers that moves only when a test says so."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class ManualTimer:
    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualTimers:
    """Implements noctaya_gateway.timers.Timers."""

    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self._queue: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()
        self.fired = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> ManualTimer:
        timer = ManualTimer(when, callback)
        heapq.heappush(self._queue, (when, next(self._order), timer))
        return timer

    @property
    def armed(self) -> int:
        """Timers that are neither run nor called off."""
        return sum(not timer.cancelled for _, _, timer in self._queue)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, running what falls due in order."""
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            when, _, timer = heapq.heappop(self._queue)
            if timer.cancelled:
                continue
            self.now = max(self.now, when)
            self.fired += 1
            timer.callback()
        self.now = end

    def settle(self) -> None:
        """Run what is due now."""
        self.advance(0.0)
