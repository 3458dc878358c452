"""Admission: a bounded number of slots, taken without waiting.

A slot covers a request from the moment its body is in until its last response byte, held or forwarded
(contracts 3.5), so the bound is also the warm concurrency cap of this gateway. Safe methods never take
one (behaviour G3). Admission is the only source of "pending" demand; whoever listens is told after
every change.
"""

from __future__ import annotations

from collections.abc import Callable

from noctaya_gateway.errors import QueueFull


class Slot:
    """One admitted request; give it back with `release`, as often as you like."""

    __slots__ = ("_admission",)

    def __init__(self, admission: Admission) -> None:
        self._admission: Admission | None = admission

    def release(self) -> None:
        """Free the slot; further calls do nothing."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.release_one()


class Admission:
    """At most `limit` (>= 1) slots at a time."""

    def __init__(self, limit: int, *, on_change: Callable[[], None] = lambda: None) -> None:
        if limit < 1:
            raise ValueError(f"admission needs at least one slot, got {limit}")
        self.limit = limit
        self.pending = 0
        self._on_change = on_change

    def notify(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` after every change of `pending` from now on."""
        self._on_change = on_change

    def admit(self) -> Slot:
        """Take a slot, or raise QueueFull at once."""
        if self.pending >= self.limit:
            raise QueueFull(self.limit)
        self.pending += 1
        self._on_change()
        return Slot(self)

    def release_one(self) -> None:
        """What `Slot.release` does once."""
        self.pending -= 1
        self._on_change()
