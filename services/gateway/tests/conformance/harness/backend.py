"""A model server whose every byte and moment a test decides.

Health probes are answered apart from model calls, so that a test can count the probes and never sees one
among its calls. Everything that arrives is kept as bytes; every close is kept with its moment.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from .message import LAST_CHUNK, Body, Head, Header, chunk, read_body, read_head, render_head
from .wire import SOON, Wire, WireEndError

JSON_REPLY = b'{"id":"chatcmpl-1","object":"chat.completion","choices":[]}'
_EVENT = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}\n\n'
SSE_PIECES = (
    _EVENT % b'{"index":0,"delta":{"content":"he"},"finish_reason":null}',
    _EVENT % b'{"index":0,"delta":{"content":"llo"},"finish_reason":null}',
    _EVENT % b'{"index":0,"delta":{},"finish_reason":"stop"}',
    b"data: [DONE]\n\n",
)


@dataclass
class Call:
    """One model request as the backend saw it, and the pen to answer it with."""

    wire: Wire
    head: Head
    at: float
    body: Body | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answered(self) -> bool:
        return self.finished.is_set()

    def finish(self) -> None:
        """A held call was answered by the test itself: the connection may carry the next one."""
        self.finished.set()

    @property
    def data(self) -> bytes:
        assert self.body is not None, "body was not read"
        return self.body.data

    async def read_body(self) -> bytes:
        self.body = await read_body(self.wire, self.head, response=False)
        return self.body.data

    def send(self, data: bytes) -> None:
        self.wire.write(data)

    def send_head(self, status: bytes = b"200 OK", headers: Iterable[Header] = ()) -> None:
        self.send(render_head(b"HTTP/1.1 " + status, headers))

    def reply(
        self,
        body: bytes = JSON_REPLY,
        *,
        status: bytes = b"200 OK",
        headers: Iterable[Header] = ((b"Content-Type", b"application/json"),),
    ) -> None:
        self.send(
            render_head(b"HTTP/1.1 " + status, [*headers, (b"Content-Length", b"%d" % len(body))]) + body
        )

    def send_event_stream_head(self) -> None:
        self.send_head(headers=((b"Content-Type", b"text/event-stream"), (b"Transfer-Encoding", b"chunked")))

    def send_chunk(self, data: bytes) -> None:
        self.send(chunk(data))

    def end_chunks(self) -> None:
        self.send(LAST_CHUNK)

    async def stream(self, pieces: Iterable[bytes] = SSE_PIECES, *, pause: float = 0.0) -> None:
        """A whole event stream."""
        self.send_event_stream_head()
        for piece in pieces:
            self.send_chunk(piece)
            await asyncio.sleep(pause)
        self.end_chunks()


Script = Callable[[Call], Awaitable[None]]


async def answer(call: Call) -> None:
    """Default script: an event stream when the body asks for one, a JSON reply otherwise."""
    if b'"stream":true' in call.data:
        await call.stream()
    else:
        call.reply()


async def hold(call: Call) -> None:
    """Answer nothing; return once the other side has gone or the test has answered and finished the call."""
    gone = asyncio.ensure_future(call.wire.ended(within=300))
    finished = asyncio.ensure_future(call.finished.wait())
    _, pending = await asyncio.wait({gone, finished}, return_when=asyncio.FIRST_COMPLETED)
    for waiter in pending:
        waiter.cancel()


class FakeBackend:
    """See the module's docstring. Start with `await start()`; `port` stays the same over stop and start."""

    def __init__(self, *, healthy: bool = True, health_path: bytes = b"/health") -> None:
        self.health_path = health_path
        self.health: Callable[[Call], Awaitable[None]] | None = None
        self.wires: list[Wire] = []
        self.probes: list[float] = []
        self.calls: list[Call] = []
        self.script: Script = answer
        self.read_bodies = True
        self.port = 0
        self.host = "127.0.0.1"
        self.faults: list[BaseException] = []
        self._health_status = b"200 OK" if healthy else b"503 Service Unavailable"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    async def start(
        self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        raw.bind((host, port or self.port))
        self.host = host
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Wire(self._opened), sock=raw, backlog=1024, ssl=tls
        )
        self.port = raw.getsockname()[1]

    async def refuse(self) -> None:
        """Close the listener: connections are refused from now on, open ones live on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def stop(self) -> None:
        """Gone: listener and every connection, as when a Pod is killed."""
        await self.refuse()
        for wire in self.wires:
            wire.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def set_healthy(self, healthy: bool) -> None:
        self._health_status = b"200 OK" if healthy else b"503 Service Unavailable"

    def set_health_status(self, status: bytes) -> None:
        self._health_status = status

    def reset(self) -> None:
        """Forget what was seen, answer as by default."""
        self.calls.clear()
        self.probes.clear()
        self.health = None
        self.script = answer
        self.read_bodies = True

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def open_calls(self) -> list[Call]:
        """Calls without a complete answer whose connection is still open."""
        return [call for call in self.calls if not call.answered and call.wire.open]

    async def call(self, number: int = 1, within: float = SOON) -> Call:
        """The `number`-th model request since the last reset."""
        async with asyncio.timeout(within):
            while len(self.calls) < number:
                self._news.clear()
                await self._news.wait()
        return self.calls[number - 1]

    def _opened(self, wire: Wire) -> None:
        self.wires.append(wire)
        task = asyncio.get_running_loop().create_task(self._serve(wire))
        self._tasks.add(task)
        task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.faults.append(fault)

    async def _serve(self, wire: Wire) -> None:
        try:
            while True:
                head = await read_head(wire, within=3600)
                call = Call(wire=wire, head=head, at=time.monotonic())
                if head.target == self.health_path:
                    await self._probe(call)
                else:
                    await self._model(call)
        except WireEndError:
            pass
        finally:
            wire.close()

    async def _probe(self, call: Call) -> None:
        self.probes.append(call.at)
        if self.health is not None:
            await self.health(call)
        else:
            call.reply(b"", status=self._health_status, headers=())

    async def _model(self, call: Call) -> None:
        if self.read_bodies:
            await call.read_body()
        self.calls.append(call)
        self._news.set()
        await self.script(call)
        call.finish()
