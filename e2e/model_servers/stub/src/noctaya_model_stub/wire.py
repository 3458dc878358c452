"""Just enough of HTTP/1.1 for one server behind one gateway: nothing to install, started in no time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

MAX_HEAD = 64 << 10
MAX_BODY = 64 << 20


class BadRequest(Exception):
    """What was sent is no request that can be read; the connection is closed after the answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read whole."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    @property
    def keep_alive(self) -> bool:
        """Whether the connection goes on."""
        return "close" not in self.headers.get("connection", "").lower()


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request, None at the end of the connection. Raises BadRequest."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadRequest("the head ends early") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest(f"the head is above {MAX_HEAD} bytes") from error
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest("no HTTP/1 request line")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(f"no header: {line!r}")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    target = urlsplit(words[1])
    body = await _read_body(reader, headers)
    return Request(words[0], target.path, parse_qs(target.query), headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await _read_chunks(reader)
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= MAX_BODY:
            raise BadRequest(f"a body of {length} bytes")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise BadRequest(f"the body can't be read: {error}") from error


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        if len(body) + size > MAX_BODY:
            raise BadRequest(f"a body above {MAX_BODY} bytes")
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while (await reader.readline()).strip():
        pass  # trailers mean nothing here
    return bytes(body)


class Response:
    """Writes one response: whole by `send` and `send_json`, or chunk by chunk."""

    def __init__(self, writer: asyncio.StreamWriter, *, pod: str, keep_alive: bool) -> None:
        self._writer = writer
        self._common = {"x-stub-pod": pod, "connection": "keep-alive" if keep_alive else "close"}

    async def send_json(self, status: int, body: Any, **headers: str) -> None:
        """A JSON response."""
        content = json.dumps(body, separators=(",", ":")).encode()
        await self.send(status, content, content_type="application/json", **headers)

    async def send(self, status: int, body: bytes, *, content_type: str, **headers: str) -> None:
        """A response of known length."""
        self._head(status, {"content-type": content_type, "content-length": str(len(body)), **headers})
        self._writer.write(body)
        await self._writer.drain()

    async def begin_events(self) -> None:
        """The head of a stream of server-sent events."""
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        await self._writer.drain()

    async def event(self, data: str) -> None:
        """One event of it."""
        block = f"data: {data}\n\n".encode()
        self._writer.write(b"%x\r\n%s\r\n" % (len(block), block))
        await self._writer.drain()

    async def end_events(self) -> None:
        """Its proper end."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in {**headers, **self._common}.items()]
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
