"""The client's end: requests written byte by byte, answers read byte by byte."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from .message import Body, Head, Header, read_body, read_chunk, read_head, render_head
from .wire import SOON, Wire, WireEndError

CHAT = b"/v1/chat/completions"
STREAM_BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
PLAIN_BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'


@dataclass(frozen=True)
class Reply:
    """A whole response."""

    head: Head
    body: Body

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def data(self) -> bytes:
        return self.body.data

    def json(self) -> Any:
        return json.loads(self.body.data)

    @property
    def error(self) -> dict[str, Any]:
        """The OpenAI error object; its shape is asserted on the way."""
        value = self.json()
        assert set(value) == {"error"}, value
        error: dict[str, Any] = value["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert isinstance(error["message"], str)
        assert error["message"]
        assert isinstance(error["type"], str)
        assert (self.head.one("content-type") or b"").startswith(b"application/json")
        return error


def request_bytes(
    method: bytes = b"POST",
    target: bytes = CHAT,
    *,
    headers: Iterable[Header] = (),
    body: bytes | None = PLAIN_BODY,
    host: bytes | None = b"model.test",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """A request with Host first, the given headers, then Content-Length when there is a body."""
    lines = [] if host is None else [(b"Host", host)]
    lines += list(headers)
    if body is not None:
        lines.append((b"Content-Length", b"%d" % len(body)))
    return render_head(method + b" " + target + b" " + version, lines) + (body or b"")


class Client:
    """One client connection."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def send(self, data: bytes) -> None:
        self.wire.write(data)

    def request(self, method: bytes = b"POST", target: bytes = CHAT, **options: Any) -> None:
        self.send(request_bytes(method, target, **options))

    async def head(self, within: float = SOON) -> Head:
        return await read_head(self.wire, within)

    async def reply(self, *, method: bytes = b"POST", within: float = SOON) -> Reply:
        """The next response, whole. HEAD, 204 and 304 have no body."""
        head = await self.head(within)
        if method == b"HEAD" or head.status in {204, 304}:
            return Reply(head, Body(b"", complete=True))
        return Reply(head, await read_body(self.wire, head, response=True, within=within))

    async def exchange(self, method: bytes = b"POST", target: bytes = CHAT, **options: Any) -> Reply:
        within = options.pop("within", SOON)
        self.request(method, target, **options)
        return await self.reply(method=method, within=within)

    async def chunk(self, within: float = SOON) -> bytes:
        return await read_chunk(self.wire, within)

    async def stream_until(self, mark: bytes, within: float = SOON) -> bytes:
        """Chunked body data until `mark` was seen in it."""
        data = bytearray()
        async with asyncio.timeout(within):
            while mark not in data:
                piece = await self.chunk(within)
                if not piece:
                    raise WireEndError(bytes(data))
                data += piece
        return bytes(data)

    async def stream_to_end(self, within: float = SOON) -> Body:
        """The rest of a chunked body."""
        data = bytearray()
        try:
            async with asyncio.timeout(within):
                while piece := await self.chunk(within):
                    data += piece
        except WireEndError as end:
            return Body(bytes(data) + end.rest, complete=False)
        return Body(bytes(data), complete=True)

    def leave(self, *, reset: bool = False) -> None:
        """Go away, politely or with RST."""
        if reset:
            self.wire.reset()
        else:
            self.wire.close()


async def open_client(port: int, *, receive_buffer: int | None = None) -> Client:
    """Connect to a loopback port. A small `receive_buffer` makes a slow reader felt early."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    raw.setblocking(False)
    if receive_buffer is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    except BaseException:
        raw.close()
        raise
    _, wire = await asyncio.get_running_loop().create_connection(Wire, sock=raw)
    return Client(wire)


@asynccontextmanager
async def connected(port: int, **options: Any) -> AsyncIterator[Client]:
    client = await open_client(port, **options)
    try:
        yield client
    finally:
        client.wire.close()


async def ask(port: int, method: bytes = b"POST", target: bytes = CHAT, **options: Any) -> Reply:
    """One request on a connection of its own."""
    async with connected(port) as client:
        return await client.exchange(method, target, **options)
