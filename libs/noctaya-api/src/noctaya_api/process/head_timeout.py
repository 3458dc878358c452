"""A deadline and a size for request heads: who says nothing, or says it slowly or endlessly, is dropped.

A timer for each request would cost more than parsing a small head. The protocol therefore only marks when a
head is due and when it is complete, and one sweep for the whole server ages the marks.
"""

import asyncio
from collections.abc import Collection
from typing import Any, Final

MAX_HEAD_BYTES: Final = 1024 * 1024
"""Largest request head (contracts 3.8: 1 MiB); measured in what arrives, so a little more may get in."""
_SWEEPS = 10
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class HeadTimeout:
    """Mixin for protocols with uvicorn's httptools callbacks; put it before the protocol class.

    `head_age` is None while no head is awaited, else the number of sweeps since the wait began. A protocol
    that keeps the mark itself needs no mixin: the sweep looks for the attribute only.
    """

    head_age: int | None = None
    head_bytes: int = 0
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The first head is due from now on."""
        self.head_age = 0
        super().connection_made(transport)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        """Count what arrives and is no body: a head, or trailers, which have no other bound."""
        super().data_received(data)  # type: ignore[misc]
        self.head_bytes += len(data)
        if self.head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            if not _is_answering(self):
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A head has begun."""
        self.head_age = 0
        self.head_bytes = 0
        super().on_message_begin()  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self.head_age = None
        super().on_headers_complete()  # type: ignore[misc]

    def on_body(self, body: bytes) -> None:
        """Body bytes, which are bounded elsewhere."""
        self.head_bytes = 0
        super().on_body(body)  # type: ignore[misc]


class HeadWatch:
    """The sweep over a server's connections.

    Args:
        connections: the live collection; members need `transport`, and `head_age` to be watched.
        timeout: seconds until a connection that owes a head is closed; met within a tenth of it.
    """

    def __init__(self, connections: Collection[Any], *, timeout: float) -> None:
        if timeout <= 0:
            raise ValueError("the head timeout must be above 0")
        self._connections = connections
        self._period = timeout / _SWEEPS
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Sweep from now on, in the running loop."""
        self._timer = asyncio.get_running_loop().call_later(self._period, self._sweep)

    def stop(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        for connection in list(self._connections):
            age = getattr(connection, "head_age", None)
            if age is None:
                continue
            if age >= _SWEEPS and not _is_answering(connection):
                connection.transport.close()
            else:
                connection.head_age = age + 1
        self.start()


def _is_answering(connection: Any) -> bool:
    """A slow pipelined head must not cut the answer to the request before it."""
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete
