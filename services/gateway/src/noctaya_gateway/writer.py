"""The response side of a client connection in the protocol engine: how a response looks on the wire.

One writer lives as long as its connection and is the `Client` of whichever exchange is being answered. It
decides on chunks, on `Connection` and on whether the connection goes on afterwards; a head waits for the
first body bytes, so that a small response is one write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noctaya_gateway.client import UNKNOWN, Header
from noctaya_gateway.request import Request
from noctaya_gateway.wire import CONTINUE, last_chunk, render_head

if TYPE_CHECKING:
    from noctaya_gateway.protocol import ModelProtocol

_BIG = 16 * 1024
"""Bytes from which a copy costs more than a second buffer for the kernel."""


class ResponseWriter:
    """See the module."""

    __slots__ = ("_chunked", "_engine", "_http11", "_keep", "_pending", "_transport")

    def __init__(self, engine: ModelProtocol) -> None:
        self._engine = engine
        self._transport = engine.transport
        self._http11 = True
        self._keep = True
        self._chunked = False
        self._pending = b""

    def turn(self, request: Request) -> None:
        """The next response is the one to `request`."""
        self._http11 = request.http11
        self._keep = request.keep_alive

    def send_continue(self) -> None:
        """See Client; pointless for a client that did not wait for it."""
        if not self._engine.body_began:
            self._transport.write(CONTINUE)

    def send_interim(self, status: int, reason: bytes, lines: list[bytes]) -> None:
        """See Client."""
        if self._http11:
            self._transport.write(render_head(status, reason, lines))

    def send_head(
        self, status: int, reason: bytes, lines: list[bytes], length: int, *, close: bool = False
    ) -> None:
        """See Client."""
        if close or self._engine.closes_next:
            self._keep = False
        self._chunked = False
        if length == UNKNOWN:
            if self._http11:
                self._chunked = True
                lines.append(b"Transfer-Encoding: chunked")
            else:
                self._keep = False
        if not self._keep:
            lines.append(b"Connection: close")
        elif not self._http11:
            lines.append(b"Connection: keep-alive")
        self._pending = render_head(status, reason, lines)

    def send_body(self, data: bytes) -> None:
        """See Client."""
        head, self._pending = self._pending, b""
        if len(data) >= _BIG:
            if self._chunked:
                self._transport.writelines((head + b"%x\r\n" % len(data), data, b"\r\n"))
            else:
                self._transport.writelines((head, data) if head else (data,))
        elif self._chunked:
            self._transport.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
        else:
            self._transport.write(head + data if head else data)

    def flush(self) -> None:
        """See Client."""
        if self._pending:
            head, self._pending = self._pending, b""
            self._transport.write(head)

    def finish(self, trailers: Sequence[Header] = (), *, close: bool = False) -> None:
        """See Client."""
        if self._chunked:
            self._chunked = False
            self._transport.write(self._pending + last_chunk(trailers))
            self._pending = b""
        elif self._pending:
            self.flush()
        self._engine.answered(keep=self._keep and not close)

    def abort(self) -> None:
        """See Client."""
        self._engine.abort()

    def pause_reading(self) -> None:
        """See Client."""
        self._engine.pause_reading()

    def resume_reading(self) -> None:
        """See Client."""
        self._engine.resume_reading()
