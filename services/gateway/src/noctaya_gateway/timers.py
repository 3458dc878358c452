"""The part of an event loop that the state machines of the gateway need: a clock and one-shot timers.

Admission, activation and the waiting line never look at the wall clock nor sleep; they are handed these
two methods. In production that is the running loop itself; in tests a clock that moves when the test
says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled call that can be called off."""

    def cancel(self) -> None:
        """Call it off; no effect when it has run."""


class Timers(Protocol):
    """A monotonic clock in seconds, and calls at a time of that clock; an asyncio event loop is one."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer:
        """Call `callback` once at `when`."""
