"""WebSocket pass-through: an upgrade is carried to a warm backend, then bytes go both ways untouched
(behaviour G3).

uvicorn hands an upgrade request to the class given as `ws` and expects it to speak for the connection from
then on; both engines get here that way. The handshake runs as an ordinary exchange, so it is authenticated,
balanced and answered like any GET - and refused without waking anything when the service is cold. Only a
101 of the backend turns the connection into a tunnel; any other response is passed on and the connection
closed, so nothing can be smuggled past the gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httptools
from uvicorn.protocols.utils import get_remote_addr

from noctaya_gateway.client import Header
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.departure import PausableReading
from noctaya_gateway.exchange import Exchange
from noctaya_gateway.request import Request
from noctaya_gateway.wire import render_head

EARLY_LIMIT = 64 * 1024
"""Bytes a client may send before the backend agreed to the upgrade."""


class Tunnel(asyncio.Protocol):
    """One upgraded connection; `Client` of its exchange."""

    path: DataPath

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any]) -> None:
        del config, app_state
        self.connections: set[Any] = server_state.connections
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self._parser = httptools.HttpRequestParser(self)
        self._headers: list[Header] = []
        self._target = b""
        self._exchange: Exchange | None = None
        self._early = b""
        self._switched = False
        self._finished = False
        self._reading: PausableReading | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self.transport = transport  # type: ignore[assignment]
        self.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        exchange = self._exchange
        if exchange is None:
            self._handshake(data)
        elif self._switched:
            exchange.tunnelled(data)
        elif not self._finished:
            self._early += data
            if len(self._early) > EARLY_LIMIT:
                self.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.connections.discard(self)
        if self._reading is not None:
            self._reading.end()
        self._finished = True
        if self._exchange is not None:
            self._exchange.client_gone()

    def pause_writing(self) -> None:
        """The transport holds as much as it may."""
        if self._exchange is not None:
            self._exchange.client_blocked()

    def resume_writing(self) -> None:
        """The transport has room again."""
        if self._exchange is not None:
            self._exchange.client_drained()

    def shutdown(self) -> None:
        """Called by the server when it drains; a tunnel has the drain budget like any request in flight."""

    # The handshake

    def on_url(self, url: bytes) -> None:
        """Parser callback."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback."""
        self._headers.append((name, value))

    def _handshake(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._early = data[upgrade.args[0] :]
        except httptools.HttpParserError:
            self.transport.abort()
            return
        else:
            self.transport.abort()
            return
        peer = get_remote_addr(self.transport)
        request = Request(
            self._parser.get_method(),
            self._target,
            self._headers,
            peer=peer[0].encode("ascii") if peer else b"",
            notable=self.path.notable,
        )
        request.upgrade = b"websocket"
        self._exchange = exchange = self.path.open(self, request)
        exchange.begin()
        exchange.body_arrived(b"", whole=True)

    # Client

    def send_continue(self) -> None:
        """See Client; an upgrade has no body."""

    def send_interim(self, status: int, reason: bytes, lines: list[bytes]) -> None:
        """See Client."""
        self.transport.write(render_head(status, reason, lines))

    def send_head(
        self, status: int, reason: bytes, lines: list[bytes], length: int, *, close: bool = False
    ) -> None:
        """See Client."""
        del length, close
        self._switched = status == 101
        if not self._switched:
            lines.append(b"Connection: close")
        self.transport.write(render_head(status, reason, lines))
        if self._switched and self._early:
            early, self._early = self._early, b""
            self.resume_reading()
            assert self._exchange is not None
            self._exchange.tunnelled(early)

    def send_body(self, data: bytes) -> None:
        """See Client."""
        self.transport.write(data)

    def flush(self) -> None:
        """See Client; nothing is kept back."""

    def finish(self, trailers: Sequence[Header] = (), *, close: bool = False) -> None:
        """See Client."""
        del trailers, close
        self._finished = True
        self.transport.close()

    def abort(self) -> None:
        """See Client."""
        self._finished = True
        self.transport.abort()

    def pause_reading(self) -> None:
        """See Client."""
        if self._reading is None:
            self._reading = PausableReading(self.path.loop, self.transport)
        self._reading.pause()

    def resume_reading(self) -> None:
        """See Client."""
        if self._reading is not None:
            self._reading.resume()


def tunnel_protocol(path: DataPath) -> type[Tunnel]:
    """The class to give to the server as `ws`."""
    return type("BoundTunnel", (Tunnel,), {"path": path})
