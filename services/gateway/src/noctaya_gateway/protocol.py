"""The protocol engine: model traffic below ASGI, inside uvicorn's connection class.

uvicorn (pinned) owns sockets, accept and shutdown, and builds one protocol object per connection; this
subclass of its httptools protocol keeps that contract and replaces what happens between bytes and
application. A request for a backend becomes an exchange directly; one for the gateway's own paths becomes
an `Operation`, that is, uvicorn's ASGI cycle.

The parser's callbacks only take notes; work begins after each read, when everything of that read is known,
so a request that came in one piece costs one call each way. Requests on a connection are answered one after
the other. While one is being answered, what a pipelining client sends is kept as raw bytes, up to a limit,
so that its leaving is still noticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import httptools
from noctaya_api.process.head_timeout import HeadTimeout
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from noctaya_gateway.conversation import Conversation
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.departure import PausableReading
from noctaya_gateway.errors import BadRequest, GatewayError, HeadTooLarge
from noctaya_gateway.operation import Operation
from noctaya_gateway.request import Request
from noctaya_gateway.writer import ResponseWriter

log = logging.getLogger(__name__)

HEAD_LIMIT = 256 * 1024
"""Bytes of a request head that is still not complete after which it is refused with 431."""

BACKLOG_LIMIT = 64 * 1024
"""Bytes of further pipelined requests that are kept before the client is read no more."""

IDLE_AGE = -65
"""Head age given to an idle connection: 75 sweeps, so seconds with the default head timeout, until it is
closed."""

LINGER = 2.0
"""Seconds for which input is still read and dropped after a response that came before the request's end.
Closing earlier would reset the connection, and the client would never see the response."""


_VERSIONS = frozenset(("1.1", "1.0"))
_CLOSE = ((b"connection", b"close"),)


class ModelProtocol(HeadTimeout, HttpToolsProtocol):
    """One client connection; see the module."""

    path: DataPath
    on_message_begin = None  # type: ignore[assignment]  # the parser then saves itself the call

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.headers = []
        self.url = b""
        self._queue: deque[tuple[Conversation, list[bytes], bool]] = deque()
        self._active: Conversation | None = None
        self._incoming: Conversation | None = None
        self._parts: list[bytes] = []
        self._whole = False
        self._advancing = False
        self._backlog = b""
        self._reading: PausableReading | None = None
        self._ending = False
        self._dropping = False
        self._head_bytes = 0
        self._blocked = False
        self._peer = b""
        self._gate = self.path.gate
        self._writer: ResponseWriter = None  # type: ignore[assignment]  # set by connection_made

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self.head_age = 0
        self.transport = transport  # type: ignore[assignment]
        self._writer = ResponseWriter(self)
        self.connections.add(self)
        self.server = get_local_addr(self.transport)
        self.client = get_remote_addr(self.transport)
        self.scheme = "https" if is_ssl(self.transport) else "http"
        if self.client is not None:
            self._peer = self.client[0].encode("ascii")

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._dropping:
            return
        if self._active is not None and self._incoming is not self._active:
            self._keep_back(data)
            return
        self._feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.connections.discard(self)
        if self._reading is not None:
            self._reading.end()
        self._dropping = True
        self._queue.clear()
        active, self._active = self._active, None
        if active is not None:
            active.client_gone()
        # Both point back here; without this every closed connection would wait for the collector.
        del self.parser, self._writer

    def pause_writing(self) -> None:
        """The transport holds as much as it may."""
        self._blocked = True
        if self._active is not None:
            self._active.client_blocked()

    def resume_writing(self) -> None:
        """The transport has room again."""
        self._blocked = False
        if self._active is not None:
            self._active.client_drained()

    def shutdown(self) -> None:
        """Called by the server when it drains: end now if idle, else after the response under way."""
        self._ending = True
        if self._active is None:
            self.transport.close()

    # Parser callbacks

    def on_url(self, url: bytes) -> None:
        """Parser callback."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Parser callback."""
        parser = self.parser
        headers, self.headers = self.headers, []
        target, self.url = self.url, b""
        version = parser.get_http_version()
        path = self.path
        request = Request(
            parser.get_method(),
            target,
            headers,
            http11=version == "1.1",
            peer=self._peer,
            notable=path.notable,
        )
        if version not in _VERSIONS:
            request.refuse("Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        request.keep_alive = parser.should_keep_alive()
        if self._incoming is not None:
            self._queue.append((self._incoming, self._parts, True))
        self._parts = []
        self._whole = False
        self._incoming = (
            Operation(self, request) if path.is_operation(target) else path.open(self._writer, request)
        )

    def on_body(self, body: bytes) -> None:
        """Parser callback."""
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Parser callback."""
        self._whole = True
        if self.headers:  # trailers, which belong to this connection only
            self.headers = []

    # From bytes to conversations

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserCallbackError:
            log.exception("a parser callback failed")
            self.transport.abort()
            return
        except httptools.HttpParserError as error:
            self._malformed(BadRequest(f"The request is not valid HTTP: {error}.", headers=_CLOSE))
            return
        if self._incoming is None and self._active is None:
            if self.head_age is None or self.head_age < 0:
                self.head_age = 0
            self._count_head(len(data))
            return
        if not self._whole and not self._parts and not self._count_head(len(data)):
            return
        self._advance()

    def _count_head(self, size: int) -> bool:
        """Count bytes that brought no body: a head, trailers, chunk extensions. False when they were too
        many."""
        self._head_bytes += size
        if self._head_bytes <= HEAD_LIMIT:
            return True
        self._malformed(HeadTooLarge(HEAD_LIMIT))
        return False

    def _advance(self) -> None:  # noqa: PLR0912
        """Give the active conversation what came for it, or begin the next one, as far as that goes."""
        if self._advancing:
            return
        self._advancing = True
        while not self._dropping:
            queued = bool(self._queue)
            if queued:
                conversation, parts, whole = self._queue[0]
            elif self._incoming is not None:
                conversation, parts, whole = self._incoming, self._parts, self._whole
            else:
                break
            begins = self._active is None
            if begins:
                self._active = conversation
                self._writer.turn(conversation.request)
                self.head_age = None
                self._head_bytes = 0
                if self._blocked:
                    conversation.client_blocked()
                conversation.begin()
            elif self._active is not conversation:
                break
            if queued:
                self._queue.popleft()
            else:
                self._parts = []
                if whole:
                    self._incoming = None
            if parts:
                self._head_bytes = 0
            if parts or whole or begins:
                conversation.body_arrived(parts[0] if len(parts) == 1 else b"".join(parts), whole=whole)
            if not whole:
                break
        self._advancing = False
        if self._backlog and not self._dropping and self._active in (None, self._incoming):
            self._take_backlog()

    def _keep_back(self, data: bytes) -> None:
        self._backlog += data
        if len(self._backlog) > BACKLOG_LIMIT:
            self.pause_reading()

    def _take_backlog(self) -> None:
        backlog, self._backlog = self._backlog, b""
        self.resume_reading()
        self._feed(backlog)

    def _malformed(self, error: GatewayError) -> None:
        incoming = self._incoming
        if incoming is not None and not self._whole:
            if incoming is self._active:
                incoming.failed(error)
                return
            incoming.request.fault = error
            self._whole = True
            self._advance()
            return
        request = Request(b"GET", b"/", [], notable=())
        request.fault = error
        if incoming is not None:
            self._queue.append((incoming, self._parts, True))
        self._incoming, self._parts, self._whole = self.path.open(self._writer, request), [], True
        self._advance()

    def _upgrade(self, rest: bytes) -> None:
        incoming = self._incoming
        assert incoming is not None
        request = incoming.request
        wanted = b"".join(value for name, value in request.headers if name.lower() == b"upgrade")
        if request.method == b"CONNECT" or self._active is not None or self._queue:
            request.refuse("The connection can't be turned into a tunnel.")
        elif wanted.strip().lower() == b"websocket" and self.ws_protocol_class is not None:
            self._hand_over(request, rest)
            return
        elif request.method != b"CONNECT":
            self._feed_without_upgrade(request, rest)
            return
        self._advance()

    def _hand_over(self, request: Request, rest: bytes) -> None:
        self.connections.discard(self)
        self._dropping = True
        tunnel: Any = self.ws_protocol_class(  # type: ignore[misc, call-arg]
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        self.transport.set_protocol(tunnel)
        tunnel.connection_made(self.transport)
        tunnel.data_received(_request_bytes(request, without=()) + rest)

    def _feed_without_upgrade(self, request: Request, rest: bytes) -> None:
        """Go on as if no upgrade had been asked for; the parser skipped the body, so it starts again."""
        self._incoming, self._parts, self._whole = None, [], False
        self.parser = httptools.HttpRequestParser(self)
        self._feed(_request_bytes(request, without=(b"connection", b"upgrade", b"http2-settings")) + rest)

    # What the writer and the operations need

    @property
    def body_began(self) -> bool:
        """True when body bytes of the active request came already."""
        return bool(self._parts)

    @property
    def closes_next(self) -> bool:
        """True when the connection can't go on after the active response."""
        return self._ending or self._gate.draining or (self._incoming is self._active and not self._whole)

    def answered(self, *, keep: bool) -> None:
        """The active response is complete; with `keep` the connection goes on."""
        active, self._active = self._active, None
        if active is not None and self._incoming is active and not self._whole:
            self._linger()
        elif not keep:
            self._close()
        else:
            self._settle()

    def abort(self) -> None:
        """Cut the connection."""
        self._active = None
        self._dropping = True
        self.transport.abort()

    def pause_reading(self) -> None:
        """Read no more for now, but notice when the client leaves."""
        if self._reading is None:
            self._reading = PausableReading(self.loop, self.transport)
        self._reading.pause()

    def resume_reading(self) -> None:
        """Undo `pause_reading`."""
        if self._reading is not None:
            self._reading.resume()

    def run_cycle(self, cycle: RequestResponseCycle) -> None:
        """Start uvicorn's cycle of an operation."""
        self.cycle = cycle
        self._start_asgi_task(cycle, self.app)

    def operation_done(self, operation: Operation) -> None:
        """The operation's response is sent."""
        if self._active is operation:
            self._active = None
            if not operation.keep_alive:
                self._dropping = True
            else:
                self._settle()

    def _settle(self) -> None:
        self.head_age = IDLE_AGE
        self.server_state.total_requests += 1
        if self._ending:
            self._close()
        elif not self._advancing and (self._queue or self._incoming is not None or self._backlog):
            self._advance()

    def _close(self) -> None:
        self._dropping = True
        self.transport.close()

    def _linger(self) -> None:
        self._dropping = True
        self.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)


def _request_bytes(request: Request, *, without: Sequence[bytes]) -> bytes:
    lines = [b"%b: %b\r\n" % (name, value) for name, value in request.headers if name.lower() not in without]
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method, request.target, b"".join(lines))


def model_protocol(path: DataPath) -> type[ModelProtocol]:
    """The protocol class for a server in front of `path`."""
    return type("BoundModelProtocol", (ModelProtocol,), {"path": path})
