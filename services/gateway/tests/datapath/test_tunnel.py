"""WebSocket pass-through (behaviour G3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from .conftest import MakeBackend, MakeStage
from .stage import ok, read_head, replying, until

UPGRADE = (
    b"GET /v1/realtime?m=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: k\r\n"
)
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_head(reader)
    writer.write(SWITCH + b"hello")
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def test_g3_bytes_pass_both_ways_and_the_end_too(
    stage: MakeStage, backend: MakeBackend, engine: str
) -> None:
    server = await backend(echo)
    gateway = await stage()
    gateway.warm(server)
    reader, writer = await gateway.connect()
    early = b"early" if engine == "protocol" else b""  # uvicorn drops what comes before the 101
    writer.write(UPGRADE + b"\r\n" + early)
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" in head
    assert await reader.readexactly(5 + len(early)) == b"hello" + early
    blob = bytes(range(256)) * 4000
    writer.write(blob)
    assert await asyncio.wait_for(reader.readexactly(len(blob)), 20) == blob
    assert gateway.admission.pending == 1
    writer.close()
    await until(lambda: server.open == 0)
    await until(gateway.at_rest)


async def test_g3_tunnel_needs_the_key_and_keeps_it(
    stage: MakeStage, backend: MakeBackend, tmp_path: Path
) -> None:
    heads: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_head(reader))
        writer.write(SWITCH)
        await reader.read(-1)

    keys = tmp_path / "keys"
    keys.write_text("secret")
    gateway = await stage(keys=keys)
    gateway.warm(await backend(handler))
    assert (await gateway.ask(UPGRADE + b"\r\n")).startswith(b"HTTP/1.1 401 ")
    reader, writer = await gateway.connect()
    writer.write(UPGRADE + b"Authorization: bearer secret\r\n\r\n")
    assert (await read_head(reader)).startswith(b"HTTP/1.1 101 ")
    assert b"secret" not in heads[0]
    assert b"\r\nupgrade: websocket\r\n" in heads[0].lower()
    writer.close()


async def test_g3_cold_service_refuses_an_upgrade_and_sleeps_on(stage: MakeStage) -> None:
    gateway = await stage()
    reply = await gateway.ask(UPGRADE + b"\r\n")
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"cold_start"' in reply
    assert not gateway.activation.pending


async def test_g3_backend_that_declines_gets_no_tunnel(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok(b"no")))
    gateway = await stage()
    gateway.warm(server)
    reply = await gateway.ask(UPGRADE + b"\r\nPOST /admin HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert reply.endswith(b"\r\n\r\nno")
    assert server.accepted == 1


async def test_g3_backend_that_hangs_up_ends_the_tunnel(stage: MakeStage, backend: MakeBackend) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(SWITCH + b"bye")

    gateway = await stage()
    gateway.warm(await backend(handler))
    assert (await gateway.ask(UPGRADE + b"\r\n")).endswith(b"\r\n\r\nbye")
