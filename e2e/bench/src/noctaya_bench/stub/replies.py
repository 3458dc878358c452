"""Reply bodies of the stub: paced server-sent events and a large body, both obeying back-pressure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from ..payloads import DONE_EVENT, chat_reply, sse_event

BLOCK = b"b" * 65536


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def json_reply(body: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole JSON response."""
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


CHAT_REPLY = json_reply(chat_reply())
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
SSE_EVENT = _chunked(sse_event())
SSE_END = _chunked(DONE_EVENT) + b"0\r\n\r\n"


class Reply(Protocol):
    """A body that is sent over time."""

    def resume(self) -> None:
        """The connection takes bytes again."""

    def stop(self) -> None:
        """The connection is gone."""


class EventReply:
    """`count` events, one every `interval` seconds (0 = all at once), then `[DONE]`; sooner once `is_over`.

    The first event comes after a random part of the interval: streams opened together don't tick together.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        count: int,
        interval: float,
        is_over: Callable[[], bool],
        finished: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._left = count
        self._interval = interval
        self._is_over = is_over
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        transport.write(SSE_HEAD)
        if interval > 0:
            self._next = self._loop.time() + interval * random.random()
            self._timer = self._loop.call_at(self._next, self._tick)
        else:
            transport.write(SSE_EVENT * count)
            self._end()

    def _tick(self) -> None:
        if self._left == 0 or self._is_over():
            self._end()
            return
        self._left -= 1
        self._transport.write(SSE_EVENT)
        self._next += self._interval
        self._timer = self._loop.call_at(self._next, self._tick)

    def _end(self) -> None:
        self._timer = None
        self._transport.write(SSE_END)
        self._finished()

    def resume(self) -> None:
        """Nothing to do: events are paced by time and small."""

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class LargeReply:
    """`size` bytes in blocks of 64 KB, written only while the connection takes them."""

    def __init__(self, transport: asyncio.Transport, size: int, finished: Callable[[], None]) -> None:
        self._transport = transport
        self._left = size
        self._finished = finished
        self._writable = True
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %d\r\n\r\n"
        transport.write(head % size)

    def pause(self) -> None:
        self._writable = False

    def resume(self) -> None:
        self._writable = True
        while self._writable and self._left:
            block = BLOCK[: self._left]
            self._left -= len(block)
            self._transport.write(block)
        if not self._left:
            self._finished()

    def stop(self) -> None:
        self._writable = False
