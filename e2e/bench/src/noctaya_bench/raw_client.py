"""A client that reads as slowly as it is told, or leaves in the middle: what P7 needs and real clients do."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from .patience import until


class RawClient(asyncio.Protocol):
    """One connection; counts the bytes it gets, and reads nothing for `rest` seconds after each piece."""

    def __init__(self, *, rest: float = 0.0) -> None:
        self._rest = rest
        self._transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self.head = b""
        self.received = 0

    @classmethod
    async def connect(cls, port: int, *, rest: float = 0.0) -> RawClient:
        """Connect to the loopback port."""
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: cls(rest=rest), "127.0.0.1", port)
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if len(self.head) < 4096:
            self.head += data[:4096]
        self.received += len(data)
        if self._rest:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(self._rest, self._go_on)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._writable.set()

    async def send(self, data: bytes) -> None:
        """Write, waiting for room first."""
        await self._writable.wait()
        self._transport.write(data)

    async def has_received(self, size: int, within: float) -> None:
        """Return once `size` bytes, head included, came; TimeoutError otherwise, also after a hang-up."""

        async def came() -> bool:
            if self.received < size and self._closed.is_set():
                raise TimeoutError(f"the connection was closed after {self.received} of {size} bytes")
            return self.received >= size

        await until(came, within=within)

    def read_fast(self) -> None:
        """Rest no more."""
        self._rest = 0.0

    def leave(self) -> float:
        """Close the connection; returns the monotonic time."""
        self._transport.abort()
        return time.monotonic()

    def _go_on(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()
