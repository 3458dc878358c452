"""The ASGI engine: model traffic as a raw ASGI application, on public interfaces only.

It is the plain variant of the two engines (the other is `protocol`), slower and free of assumptions about the
inside of the server. Each request is one task that reads the client and one that writes to it, so that a
client that leaves is noticed while a response is on its way.

What ASGI has no words for is left out: interim responses, trailers, reason phrases, the letter case of
request headers, an empty query. Cutting a connection is done by not finishing the response, upon which the
server closes it. Some limits are the server's: it stops reading behind a pipelined request, it drops the body
that follows an offer to upgrade (such a request is refused), and it would send chunks to an HTTP/1.0 client,
which therefore gets a response of unknown length only when it is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from noctaya_gateway.client import UNKNOWN, Header
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.request import Request

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

HIGH_WATER = 64 * 1024
"""Bytes waiting for the client at which the backend is read no more."""

COLLECT_LIMIT = 8 * 1024 * 1024
"""Largest response of unknown length that an HTTP/1.0 client gets: the server would send it chunks, so the
response is collected to learn its length."""

LINGER = 2.0
"""Seconds for which the rest of a refused body is read, so that the client gets to see the refusal."""


class ModelApp:
    """Serves model traffic itself and hands the gateway's own paths to `operations`."""

    def __init__(self, path: DataPath, *, operations: AsgiApp) -> None:
        self._path = path
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self._operations(scope, receive, send)
            return
        query = scope["query_string"]
        peer = scope.get("client")
        request = Request(
            scope["method"].encode("ascii"),
            b"%b?%b" % (scope["raw_path"], query) if query else scope["raw_path"],
            list(scope["headers"]),
            http11=scope["http_version"] != "1.0",
            peer=peer[0].encode("ascii") if peer else b"",
            notable=self._path.notable,
        )
        if self._path.is_operation(request.target):
            await self._operations(scope, receive, _identified(send, request.request_id))
        else:
            await AsgiClient(self._path, request).run(receive, send)


def _identified(send: Send, request_id: bytes) -> Send:
    """`send` that adds the request id to the response."""

    async def identified(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"x-request-id", request_id)]}
        await send(message)

    return identified


class AsgiClient:
    """The client of one request, see `client.Client`."""

    def __init__(self, path: DataPath, request: Request) -> None:
        self._request = request
        self._gate = path.gate
        self._queue: deque[Message] = deque()
        self._queued = 0
        self._blocked = False
        self._wake = asyncio.Event()
        self._readable = asyncio.Event()
        self._readable.set()
        self._asked = asyncio.Event()
        self._whole = asyncio.Event()
        self._head: Message | None = None
        self._collected: list[bytes] | None = None
        self._finished = self._aborted = False
        self._exchange = path.open(self, request)

    async def run(self, receive: Receive, send: Send) -> None:
        """Carry the request through; returns without having finished the response when it has to be cut."""
        self._exchange.begin()
        reader = asyncio.create_task(self._read(receive))
        try:
            await self._write(send)
        except asyncio.CancelledError:
            # Only the end of the drain cancels requests; the server closes the connection of one that
            # returns.
            self._aborted = True
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            self._exchange.client_gone()

    async def _read(self, receive: Receive) -> None:
        exchange = self._exchange
        if self._request.expects_continue:
            await self._asked.wait()
        self._asked.set()
        while True:
            await self._readable.wait()
            message = await receive()
            if message["type"] == "http.disconnect":
                self._aborted = True
                exchange.client_gone()
                self._wake.set()
                return
            whole = not message.get("more_body", False)
            if whole:
                self._whole.set()
            exchange.body_arrived(message.get("body", b""), whole=whole)

    async def _write(self, send: Send) -> None:
        queue = self._queue
        while True:
            while queue:
                message = queue.popleft()
                self._queued -= len(message.get("body", b""))
                if message.get("more_body") is False and self._asked.is_set():
                    await self._rest_of_body()
                await send(message)
                if self._blocked and self._queued < HIGH_WATER // 2:
                    self._blocked = False
                    self._exchange.client_drained()
            if self._finished or self._aborted:
                return
            self._wake.clear()
            await self._wake.wait()

    async def _rest_of_body(self) -> None:
        if self._whole.is_set():  # waiting takes a turn of the loop even for what is there
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._whole.wait(), LINGER)

    def _put(self, message: Message) -> None:
        self._queue.append(message)
        self._queued += len(message.get("body", b""))
        if self._queued > HIGH_WATER and not self._blocked:
            self._blocked = True
            self._exchange.client_blocked()
        self._wake.set()

    # Client

    def send_continue(self) -> None:
        """See Client; the server sends 100 when the body is first read."""
        self._asked.set()

    def send_interim(self, status: int, reason: bytes, lines: list[bytes]) -> None:
        """See Client; ASGI has no word for it."""

    def send_head(
        self, status: int, reason: bytes, lines: list[bytes], length: int, *, close: bool = False
    ) -> None:
        """See Client."""
        del reason
        headers = [tuple(line.split(b": ", 1)) for line in lines]
        if status == 304:  # the server would insist on a body of that length
            headers = [header for header in headers if header[0].lower() != b"content-length"]
        if close or self._gate.draining:
            headers.append((b"connection", b"close"))
        head = {"type": "http.response.start", "status": status, "headers": headers}
        if length == UNKNOWN and not self._request.http11:
            self._head, self._collected = head, []
        else:
            self._put(head)

    def send_body(self, data: bytes) -> None:
        """See Client."""
        if self._collected is None:
            self._put({"type": "http.response.body", "body": data, "more_body": True})
            return
        self._collected.append(data)
        if sum(map(len, self._collected)) > COLLECT_LIMIT:
            self._exchange.client_gone()
            self.abort()

    def flush(self) -> None:
        """See Client; the writer is awake already."""

    def finish(self, trailers: Sequence[Header] = (), *, close: bool = False) -> None:
        """See Client."""
        del trailers, close
        self._finished = True
        body = b""
        if self._head is not None and self._collected is not None:
            body = b"".join(self._collected)
            self._head["headers"].append((b"content-length", b"%d" % len(body)))
            self._put(self._head)
        self._put({"type": "http.response.body", "body": body, "more_body": False})

    def abort(self) -> None:
        """See Client."""
        self._aborted = True
        self._wake.set()

    def pause_reading(self) -> None:
        """See Client."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """See Client."""
        self._readable.set()
