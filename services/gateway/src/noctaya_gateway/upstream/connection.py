"""One HTTP/1.1 connection to a backend, carrying one exchange at a time.

The parser (llhttp, strict) only tells where a response's head and end are and hands out the body bytes;
what came with one read is delivered together after it was parsed, so a small response costs its receiver
one write. A connection is fit for another request only when the response ended exactly where its framing
said, the request was sent whole, and both sides may keep it open. Anything else - a malformed response,
bytes nobody asked for - ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import httptools

from noctaya_gateway.balancer import Address

Header = tuple[bytes, bytes]

_HEAD_LIMIT = 1024 * 1024
"""Bytes of a response that are neither whole head nor body, after which the backend is taken to be talking
nonsense."""


_SMALL = 16 * 1024
"""Bytes up to which a copy costs less than a second buffer for the kernel."""


class Receiver(Protocol):
    """Who gets the response. Calls come in the order below; interim and data any number of times."""

    def upstream_interim(self, status: int, reason: bytes, headers: list[Header]) -> None:
        """A 1xx response other than 100 and 101."""

    def upstream_head(self, status: int, reason: bytes, headers: list[Header]) -> None:
        """The final response's head, unfiltered."""

    def upstream_data(self, data: bytes) -> None:
        """Body bytes without their transfer coding."""

    def upstream_flush(self) -> None:
        """Nothing more came with this read."""

    def upstream_end(self, trailers: Sequence[Header], *, by_closing: bool = False) -> None:
        """The response is complete. The connection is no longer the receiver's. `by_closing`: it had no
        other end than that of the connection."""

    def upstream_lost(self, reason: str, *, stale: bool) -> None:
        """The connection is gone. `stale`: it was reused and died before any response byte."""

    def upstream_switched(self, reason: bytes, headers: list[Header]) -> None:
        """The backend switched protocols (101); from now on bytes come as `upstream_data`."""

    def upstream_blocked(self) -> None:
        """The backend takes no more bytes for now."""

    def upstream_drained(self) -> None:
        """The backend takes bytes again."""


class UpstreamConnection(asyncio.Protocol):
    """See the module; made by the pool only.

    Attributes:
        address: where it leads.
        served: exchanges it completed; more than 0 means that it is being reused.
        idle_since: loop time at which it became idle.
    """

    __slots__ = (
        "_blocked",
        "_body",
        "_complete",
        "_extra",
        "_final_head",
        "_head_bytes",
        "_head_only",
        "_headers",
        "_heard",
        "_interims",
        "_keep",
        "_on_gone",
        "_on_idle",
        "_parser",
        "_reading_paused",
        "_reason",
        "_receiver",
        "_sent",
        "_status",
        "_switched",
        "_transport",
        "address",
        "idle_since",
        "served",
    )

    def __init__(
        self,
        address: Address,
        *,
        on_idle: Callable[[UpstreamConnection], None],
        on_gone: Callable[[UpstreamConnection], None],
    ) -> None:
        self.address = address
        self.served = 0
        self.idle_since = 0.0
        self._on_idle = on_idle
        self._on_gone = on_gone
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # until connection_made
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiver | None = None
        self._switched = False
        self._reading_paused = False
        self._blocked = False
        self._body: list[bytes] = []
        self._interims: list[tuple[int, bytes, list[Header]]] = []
        self._reset(head_only=False)

    def _reset(self, *, head_only: bool) -> None:
        self._head_only = head_only
        self._headers: list[Header] = []
        self._final_head: list[Header] | None = None
        self._head_bytes = 0
        self._status = 0
        self._reason = b""
        self._heard = False
        self._sent = False
        self._complete = False
        self._extra = False
        self._keep = False

    # What the exchange does

    def attach(self, receiver: Receiver, *, head_only: bool) -> None:
        """Take the connection for one exchange; `head_only` when the request is HEAD."""
        self._receiver = receiver
        self._reset(head_only=head_only)

    def send(self, *parts: bytes, last: bool) -> None:
        """Send request bytes; `last` when the request ends with them."""
        self._sent = last
        if len(parts) == 1:
            self._transport.write(parts[0])
        elif len(parts) == 2 and len(parts[1]) < _SMALL:
            self._transport.write(parts[0] + parts[1])
        else:
            self._transport.writelines(parts)

    def pause_reading(self) -> None:
        """Take no more response bytes from the backend for now."""
        if not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo `pause_reading`."""
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    @property
    def usable(self) -> bool:
        """False once either side began to close it."""
        return not self._transport.is_closing()

    def close(self) -> None:
        """End the connection at once, unsent bytes and all; the receiver hears nothing more."""
        self._receiver = None
        self._transport.abort()

    def give_up(self) -> None:
        """Nobody waits for this connection any more; it may just have come about, or not."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        receiver = self._receiver
        if receiver is None:
            self._retire()
        elif self._switched:
            receiver.upstream_data(data)
            receiver.upstream_flush()
        else:
            awaiting_head = self._final_head is None
            self._heard = True
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self._switch(data[upgrade.args[0] :])
                return
            except httptools.HttpParserError as error:
                if not self._complete:
                    self._fail(f"The model server's response is not valid HTTP: {error}.")
                    return
                self._extra = True
            if awaiting_head and not self._deliver_head(receiver, len(data)):
                return
            body = self._body
            if body:
                self._body = []
                self._head_bytes = 0
                receiver.upstream_data(body[0] if len(body) == 1 else b"".join(body))
            if self._receiver is not receiver:
                return
            if self._complete:
                self._end(receiver)
            elif body or awaiting_head or self._count_head(len(data)):
                receiver.upstream_flush()

    def eof_received(self) -> None:
        """The other side sends no more; the transport closes then."""
        if self._receiver is None:
            self._retire()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._on_gone(self)
        del self._parser  # it points back here, and would leave every closed connection to the collector
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        if exc is None and (self._switched or self._ends_by_closing()):
            receiver.upstream_end((), by_closing=True)
            return
        stale = self.served > 0 and not self._heard
        receiver.upstream_lost("The model server closed the connection before its answer ended.", stale=stale)

    def pause_writing(self) -> None:
        """The transport holds as much as it may."""
        self._blocked = True
        if self._receiver is not None:
            self._receiver.upstream_blocked()

    def resume_writing(self) -> None:
        """The transport has room again."""
        self._blocked = False
        if self._receiver is not None:
            self._receiver.upstream_drained()

    # Parser callbacks: they only take notes, so that nothing of an exchange runs inside the parser

    def on_message_begin(self) -> None:
        """Parser callback."""
        if self._complete:
            self._extra = True

    def on_status(self, reason: bytes) -> None:
        """Parser callback."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Parser callback."""
        status = self._parser.get_status_code()
        if self._complete or status == 101:
            return
        headers, self._headers = self._headers, []
        if status < 200:
            if status != 100:
                self._interims.append((status, self._reason, headers))
            self._reason = b""
            return
        self._status = status
        self._final_head = headers
        if self._head_only:
            self._complete = True
            self._keep = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        """Parser callback."""
        if self._complete:
            self._extra = True
        else:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """Parser callback."""
        if self._final_head is not None and not self._complete:
            self._complete = True
            self._keep = self._parser.should_keep_alive()

    # Delivery

    def _deliver_head(self, receiver: Receiver, size: int) -> bool:
        """Hand over what came up to the final head; False when there is none yet."""
        if self._interims:
            interims, self._interims = self._interims, []
            for interim in interims:
                receiver.upstream_interim(*interim)
        head = self._final_head
        if head is None:
            self._count_head(size)
            return False
        receiver.upstream_head(self._status, self._reason, head)
        return self._receiver is receiver

    def _count_head(self, size: int) -> bool:
        """Count bytes that brought no body: a head, trailers, chunk extensions. False when they were too
        many."""
        self._head_bytes += size
        if self._head_bytes <= _HEAD_LIMIT:
            return True
        self._fail("The head of the model server's response is too large.")
        return False

    def _switch(self, rest: bytes) -> None:
        receiver = self._receiver
        if receiver is None or self._status or self._complete:
            self._fail("The model server switched protocols in the middle of an answer.")
            return
        self._switched = True
        receiver.upstream_switched(self._reason, self._headers)
        if rest and self._receiver is receiver:
            receiver.upstream_data(rest)
            receiver.upstream_flush()

    def _end(self, receiver: Receiver) -> None:
        self._receiver = None
        self.served += 1
        trailers = self._headers
        if self._keep and self._sent and not self._extra and not self._blocked:
            if self._head_only:
                self._parser = httptools.HttpResponseParser(self)
            if self._reading_paused:
                self.resume_reading()
            self._on_idle(self)
        else:
            self._retire()
        receiver.upstream_end(trailers)

    def _ends_by_closing(self) -> bool:
        head = self._final_head
        framed = (b"content-length", b"transfer-encoding")
        return head is not None and not any(name.lower() in framed for name, _ in head)

    def _fail(self, reason: str) -> None:
        receiver, self._receiver = self._receiver, None
        self._retire()
        if receiver is not None:
            receiver.upstream_lost(reason, stale=False)

    def _retire(self) -> None:
        self._on_gone(self)
        self._transport.abort()
