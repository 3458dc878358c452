"""One connection of the stub: httptools finds the end of a request, the query says what is answered.

`POST /v1/chat/completions` is answered with 1 KB of JSON after the body was swallowed. The query changes
that: `chunks=N&every=MS` streams N events, `bytes=N` sends a large body, `stall=1` never answers, `tag=T`
records the visit.
`/control/ready?value=0|1`, `/control/finish` (all paced streams end), `/control/reset` and `/control/state`
are for the bench itself.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import cast
from urllib.parse import parse_qsl

import httptools

from ..payloads import CHAT_PATH
from .replies import CHAT_REPLY, EventReply, LargeReply, json_reply
from .sightings import Sightings, Visit

_CHAT = CHAT_PATH.encode()


class StubConnection(asyncio.Protocol):
    """HTTP/1.1 keep-alive, one request at a time."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._target = b""
        self._options: dict[str, str] = {}
        self._visit: Visit | None = None
        self._reply: EventReply | LargeReply | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._sightings.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._sightings.connections -= 1
        if self._reply is not None:
            self._reply.stop()
        if self._visit is not None:
            self._visit.closed = time.monotonic()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def pause_writing(self) -> None:
        if isinstance(self._reply, LargeReply):
            self._reply.pause()

    def resume_writing(self) -> None:
        if self._reply is not None:
            self._reply.resume()

    def on_url(self, url: bytes) -> None:
        self._target = url
        if b"?" in url:
            self._options = dict(parse_qsl(url.partition(b"?")[2].decode()))
            if tag := self._options.get("tag"):
                self._visit = self._sightings.visits[tag] = Visit(started=time.monotonic())

    def on_body(self, data: bytes) -> None:
        if self._visit is not None:
            self._visit.received += len(data)

    def on_message_complete(self) -> None:
        target = self._target
        if target == _CHAT:
            self._sightings.count_request()
            self._transport.write(CHAT_REPLY)
        elif target.startswith(_CHAT):
            self._sightings.count_request()
            self._answer_as_asked(self._options)
        elif target.startswith(b"/control/"):
            self._transport.write(self._control(target))
        elif self._sightings.ready:
            self._transport.write(json_reply(b"{}"))
        else:
            self._transport.write(json_reply(b"{}", b"503 Service Unavailable"))

    def _answer_as_asked(self, options: dict[str, str]) -> None:
        if "chunks" in options:
            interval = float(options.get("every", "0")) / 1000
            begun = self._sightings.finishes
            reply = EventReply(
                self._transport,
                count=int(options["chunks"]),
                interval=interval,
                is_over=lambda: self._sightings.finishes != begun,
                finished=self._replied,
            )
            self._reply = reply if interval else None
        elif "bytes" in options:
            self._reply = LargeReply(self._transport, int(options["bytes"]), self._replied)
            self._reply.resume()
        elif "stall" not in options:
            self._transport.write(CHAT_REPLY)
            self._replied()

    def _replied(self) -> None:
        self._reply = None
        self._visit = None

    def _control(self, target: bytes) -> bytes:
        if target.startswith(b"/control/ready"):
            self._sightings.ready = self._options.get("value") == "1"
        elif target == b"/control/finish":
            self._sightings.finishes += 1
        elif target == b"/control/reset":
            self._sightings.reset()
        return json_reply(json.dumps(self._sightings.snapshot()).encode())
