"""The SSE client: many streams in one loop, every chunk counted, every end checked.

It works on an asyncio Protocol with httptools' response parser, because a client that allocates per chunk
would need more CPU than the proxies it loads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import httptools

from .patience import until
from .payloads import DONE_EVENT, HEARTBEAT

CONNECT_AT_ONCE = 64
ERROR_EVENT = b'data: {"error"'


class Stream(asyncio.Protocol):
    """One request and its event stream."""

    def __init__(self, load: StreamLoad, request: bytes) -> None:
        self._load = load
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._tail = b""
        self._transport: asyncio.Transport | None = None
        self.status = 0
        self.events = 0
        self.heartbeats = 0
        self.first_event: float | None = None
        self.ended = False
        self.failed = False
        self.complete = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Events are lines that begin with `data:`; a line may be cut anywhere."""
        self._tail += body
        cut = self._tail.rfind(b"\n") + 1
        if not cut:
            return
        lines, self._tail = self._tail[:cut], self._tail[cut:]
        self.heartbeats += lines.count(HEARTBEAT)
        self.failed = self.failed or ERROR_EVENT in lines
        events = lines.count(b"data: {")
        if events:
            if self.first_event is None:
                self.first_event = time.monotonic()
            self.events += events
            self._load.events += events
        if DONE_EVENT.rstrip() in lines:
            self.complete = self.status == 200 and not self.failed

    def on_message_complete(self) -> None:
        self._end()

    def close(self) -> None:
        """Leave, whatever the server still has to say."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self._load.stream_ended()
            self.close()


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """What became of the streams of one load."""

    streams: int
    complete: int
    events: int

    @property
    def cut(self) -> int:
        """Streams that ended without `[DONE]`, or with another status than 200."""
        return self.streams - self.complete


class StreamLoad:
    """A number of streams opened against one port."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port = port
        self._request = request
        self._left = 0
        self.streams: list[Stream] = []
        self.events = 0

    async def open(self, count: int) -> None:
        """Connect `count` streams, not more than `CONNECT_AT_ONCE` at a time."""
        loop = asyncio.get_running_loop()
        for begin in range(0, count, CONNECT_AT_ONCE):
            batch = range(begin, min(count, begin + CONNECT_AT_ONCE))
            self._left += len(batch)
            connections = (loop.create_connection(self._stream, "127.0.0.1", self._port) for _ in batch)
            await asyncio.gather(*connections)

    async def all_started(self, within: float) -> None:
        """Return once every stream has its first event or has ended; drop the others after `within`."""
        try:
            await self._until(lambda: all(one.first_event or one.ended for one in self.streams), within)
        except TimeoutError:
            for stream in self.streams:
                if stream.first_event is None:
                    stream.close()

    async def all_ended(self, within: float) -> StreamOutcome:
        """Return once every stream has ended; what has not by then counts as cut."""
        try:
            await self._until(lambda: self._left == 0, within)
        except TimeoutError:
            self.close()
        complete = sum(stream.complete for stream in self.streams)
        return StreamOutcome(streams=len(self.streams), complete=complete, events=self.events)

    def stream_ended(self) -> None:
        """Called by each stream once."""
        self._left -= 1

    def close(self) -> None:
        """Drop every connection."""
        for stream in self.streams:
            stream.close()

    def _stream(self) -> Stream:
        stream = Stream(self, self._request)
        self.streams.append(stream)
        return stream

    async def _until(self, reached: Callable[[], bool], within: float) -> None:
        async def asked() -> bool:
            return reached()

        await until(asked, within=within, every=0.01)
