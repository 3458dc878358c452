"""Single small HTTP calls of the bench itself: to the stub's control paths and to operational endpoints."""

from __future__ import annotations

import asyncio
import json
from typing import Any

CALL_SECONDS = 10.0


async def call(port: int, path: str, *, request: bytes | None = None) -> tuple[int, bytes]:
    """GET `path`, or send `request` as it is, on a fresh connection; returns status and the raw rest."""
    wire = request or f"GET {path} HTTP/1.0\r\nHost: bench.local\r\n\r\n".encode()
    async with asyncio.timeout(CALL_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(wire)
            head = await reader.readuntil(b"\r\n\r\n")
            length = content_length(head)
            body = await reader.readexactly(length) if length >= 0 else await reader.read()
        finally:
            writer.close()
    return int(head.split(None, 2)[1]), body


def content_length(head: bytes) -> int:
    """Value of Content-Length in a response head, -1 (read to the end) when it has none."""
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return -1


async def call_json(port: int, path: str) -> dict[str, Any]:
    """GET `path` and decode a JSON object."""
    status, body = await call(port, path)
    if status != 200:
        raise RuntimeError(f"{path} answered {status}: {body[:200]!r}")
    value: dict[str, Any] = json.loads(body)
    return value
