"""The request body on its way through: how much may be held, and how long it may take (behaviour G5).

Bytes are kept as they were read, never copied together before they are needed. What all requests hold at
one time is bounded by one budget per gateway; what one request may bring, and how slowly, by limits of its
own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from noctaya_gateway.client import Client
from noctaya_gateway.errors import BufferFull, RequestTooLarge

MEBIBYTE = 1024 * 1024


class BufferBudget:
    """Request bytes that all exchanges of a gateway hold together; `limit` in bytes."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class RequestBody:
    """The body of one request: what was received, and what of it is still held.

    Attributes:
        received: bytes that came so far.
        held: bytes kept at the moment, all counted in the budget.
        whole: nothing more is to come.
        kept: every byte received is still here, so the body can be sent again.
        parts: the bytes held, as they came.
    """

    __slots__ = ("_budget", "_deadline", "_limit", "held", "kept", "parts", "received", "whole")

    def __init__(self, limit: int, budget: BufferBudget) -> None:
        self._limit = limit
        self._budget = budget
        self._deadline: BodyDeadline | None = None
        self.parts: list[bytes] = []
        self.received = 0
        self.held = 0
        self.whole = False
        self.kept = True

    def arrived(self, data: bytes, *, whole: bool, keep: bool) -> None:
        """Take note of bytes that came, and hold them if `keep`.

        Raises:
            RequestTooLarge: the body is larger than it may be.
            BufferFull: the gateway holds as much as it may.
        """
        self.whole = whole
        size = len(data)
        self.received += size
        if self.received > self._limit:
            raise RequestTooLarge(self._limit)
        if keep and size:
            budget = self._budget
            if budget.used + size > budget.limit:
                raise BufferFull
            budget.used += size
            self.held += size
            self.parts.append(data)
        if self._deadline is not None:
            self._deadline.progressed(self.received, whole=whole)

    @property
    def resendable(self) -> bool:
        """True when all of it is here and can be sent again."""
        return self.whole and (self.kept or not self.received)

    def expire_after(
        self, seconds: float, *, loop: asyncio.AbstractEventLoop, call: Callable[[], None]
    ) -> None:
        """Call `call` when the body is not in after `seconds`, see BodyDeadline; for a body still to come."""
        if self._deadline is None:
            self._deadline = BodyDeadline(loop, seconds=seconds, on_expired=call)

    def pause(self, client: Client) -> None:
        """Read no more of it for now; the time stands still."""
        client.pause_reading()
        if self._deadline is not None:
            self._deadline.pause()

    def resume(self, client: Client) -> None:
        """Undo `pause`."""
        client.resume_reading()
        if self._deadline is not None:
            self._deadline.resume()

    def close(self) -> None:
        """Nobody wants the body any more."""
        self.release()
        if self._deadline is not None:
            self._deadline.cancel()

    def content(self) -> bytes:
        """All bytes held, in one piece."""
        parts = self.parts
        if len(parts) > 1:
            self.parts = parts = [b"".join(parts)]
        return parts[0] if parts else b""

    def release(self) -> None:
        """Forget the bytes held and give their share of the budget back. Idempotent."""
        if self.held:
            self._budget.used -= self.held
            self.held = 0
            self.kept = False
            self.parts = []


class BodyDeadline:
    """Time allowed for a body: `seconds` for the first MiB, and again for each further one.

    While the gateway itself keeps the client from sending (`paused`), the time does not count.
    """

    __slots__ = ("_loop", "_mark", "_on_expired", "_paused", "_seconds", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, seconds: float, on_expired: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._on_expired = on_expired
        self._mark = 1
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._arm()

    def progressed(self, received: int, *, whole: bool) -> None:
        """Tell how many bytes came so far, and whether that is all."""
        if whole:
            self.cancel()
        elif received >= self._mark * MEBIBYTE:
            self._mark = received // MEBIBYTE + 1
            if not self._paused:
                self._arm()

    def pause(self) -> None:
        """The client is not being read."""
        self._paused = True
        self.cancel()

    def resume(self) -> None:
        """The client is being read again; it gets the full time anew."""
        if self._paused:
            self._paused = False
            self._arm()

    def cancel(self) -> None:
        """The body is whole, or nobody wants it any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self.cancel()
        self._timer = self._loop.call_later(self._seconds, self._on_expired)
