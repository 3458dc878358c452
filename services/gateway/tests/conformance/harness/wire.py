"""A socket end under full control of a test.

Both the raw client and the scripted backend are made of it: bytes that arrive wait in one buffer, the moment
at which the other side went away is kept, and the test decides when to read, to stop reading, or to reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Callable
from typing import cast

SOON = 20.0
"""Seconds any single wait may take on two busy cores before the test gives up."""


class WireEndError(Exception):
    """The other side closed or reset the connection before the awaited bytes came."""

    def __init__(self, rest: bytes) -> None:
        super().__init__(f"connection ended; unread: {rest[:400]!r}")
        self.rest = rest


class Wire(asyncio.Protocol):
    """One connection; see the module's docstring."""

    def __init__(self, on_open: Callable[[Wire], None] | None = None) -> None:
        self.buffer = bytearray()
        self.total = 0
        self.opened_at = 0.0
        self.ended_at: float | None = None
        self.was_reset = False
        self._on_open = on_open
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None

    # asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.opened_at = time.monotonic()
        if self._on_open is not None:
            self._on_open(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.total += len(data)
        self._news.set()

    def eof_received(self) -> bool:
        self._mark_end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.was_reset = self.was_reset or isinstance(exc, ConnectionError)
        self._mark_end()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # what tests use
    @property
    def transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise RuntimeError("not connected")
        return self._transport

    @property
    def open(self) -> bool:
        return self.ended_at is None

    def write(self, data: bytes) -> None:
        """Queue bytes for sending; a connection that is gone swallows them, as a socket would."""
        if not self.transport.is_closing():
            self.transport.write(data)

    async def flush(self, within: float = SOON) -> None:
        """Wait until the socket takes more."""
        async with asyncio.timeout(within):
            await self._writable.wait()

    async def until(self, mark: bytes, within: float = SOON) -> bytes:
        """Everything up to and including the first `mark`."""
        await self.wait_for(lambda: mark in self.buffer, within)
        return self.take(self.buffer.index(mark) + len(mark))

    async def exactly(self, count: int, within: float = SOON) -> bytes:
        await self.wait_for(lambda: len(self.buffer) >= count, within)
        return self.take(count)

    async def to_end(self, within: float = SOON) -> bytes:
        """Everything until the other side closes."""
        async with asyncio.timeout(within):
            while self.ended_at is None:
                await self._next_news()
        return self.take(len(self.buffer))

    async def ended(self, within: float = SOON) -> float:
        """The monotonic moment at which the other side went away."""
        async with asyncio.timeout(within):
            while self.ended_at is None:
                await self._next_news()
        return self.ended_at

    async def wait_for(self, condition: Callable[[], bool], within: float = SOON) -> None:
        """Wait for a condition over the buffer; `WireEndError` when the connection ends before it holds."""
        async with asyncio.timeout(within):
            while not condition():
                if self.ended_at is not None:
                    raise WireEndError(bytes(self.buffer))
                await self._next_news()

    async def silent(self, seconds: float) -> bool:
        """True when neither a byte nor the end arrived for so long."""
        before = (self.total, self.ended_at)
        await asyncio.sleep(seconds)
        return before == (self.total, self.ended_at)

    def take(self, count: int) -> bytes:
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def pause(self) -> None:
        """Stop reading from the socket, so that the sender's window fills."""
        self.transport.pause_reading()

    def resume(self) -> None:
        self.transport.resume_reading()

    def shut_writing(self) -> None:
        """Half-close: the other side sees EOF, this side still reads."""
        self.transport.write_eof()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        raw = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _mark_end(self) -> None:
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        self._news.set()

    async def _next_news(self) -> None:
        self._news.clear()
        await self._news.wait()
