"""A client that leaves is noticed in every phase, and everything it used is given back (behaviour G5)."""

from __future__ import annotations

import asyncio

import pytest

from .conftest import MakeBackend, MakeStage
from .stage import Backend, Stage, ok, post, read_head, read_request, replying, until

LARGE = b"x" * 3_000_000


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take requests and never answer; ends when the gateway hangs up."""
    while await reader.read(1 << 20):
        pass


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"9\r\ndata: 1\n\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65536)
        await writer.drain()


async def left_nothing(gateway: Stage, server: Backend) -> None:
    await until(lambda: server.open == 0)
    await until(gateway.at_rest)
    assert gateway.pool.open_connections == 0


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
async def test_g5_before_the_response(
    stage: MakeStage, backend: MakeBackend, body: bytes, reset: bool
) -> None:
    server = await backend(silent)
    gateway = await stage()
    gateway.warm(server)
    _, writer = await gateway.connect()
    writer.write(post(body))
    await until(lambda: server.open == 1)
    if reset:
        writer.transport.abort()
    else:
        await writer.drain()
        writer.close()
    await left_nothing(gateway, server)
    assert gateway.metrics.responses == {}


async def test_g5_while_streaming(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(endless)
    gateway = await stage()
    gateway.warm(server)
    reader, writer = await gateway.connect()
    writer.write(post())
    await read_head(reader)
    writer.close()
    await left_nothing(gateway, server)
    assert gateway.metrics.responses == {200: 1}


async def test_g5_slow_reader(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(flood)
    gateway = await stage()
    gateway.warm(server)
    reader, writer = await gateway.connect()
    writer.write(post())
    await read_head(reader)
    await asyncio.sleep(0.3)
    writer.transport.abort()
    await left_nothing(gateway, server)


async def test_g5_while_sending_the_body(stage: MakeStage, backend: MakeBackend) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(ok())))
    _, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc")
    await until(lambda: gateway.budget.used == 3)
    writer.close()
    await until(gateway.at_rest)
    assert gateway.metrics.disconnects == {"body": 1}


async def test_g5_in_the_middle_of_an_upload(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(silent)
    gateway = await stage()
    gateway.warm(server)
    _, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + LARGE)
    await until(lambda: server.open == 1)
    writer.transport.abort()
    await left_nothing(gateway, server)


@pytest.mark.parametrize("engine", ["protocol"])
async def test_g5_upload_to_a_backend_that_does_not_read(stage: MakeStage, backend: MakeBackend) -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(gateway.at_rest)

    server = await backend(deaf)
    gateway = await stage()
    gateway.warm(server)
    _, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + b"x" * 40_000_000)
    await until(lambda: server.open == 1)
    await asyncio.sleep(0.3)
    writer.transport.abort()
    await left_nothing(gateway, server)


@pytest.mark.parametrize("stream", [True, False])
async def test_g5_while_held(stage: MakeStage, backend: MakeBackend, stream: bool) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    gateway.cool(await backend(replying(ok())))
    reader, writer = await gateway.connect()
    writer.write(post(b'{"stream":true}' if stream else b"{}" + LARGE))
    await until(lambda: len(gateway.line) == 1)
    if stream:
        await read_head(reader)
    writer.close()
    await until(gateway.at_rest)
    assert gateway.activation.pending
    assert gateway.metrics.rejections == {}
    assert gateway.metrics.responses == ({200: 1} if stream else {})


@pytest.mark.parametrize("engine", ["protocol"])
async def test_g5_behind_a_pipelined_request(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(silent)
    gateway = await stage()
    gateway.warm(server)
    _, writer = await gateway.connect()
    writer.write(post(close=False) + post(b"y" * 200_000))
    await until(lambda: server.open == 1)
    await writer.drain()
    writer.close()
    await left_nothing(gateway, server)


async def test_g5_many_clients_that_leave_at_random(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(endless)
    gateway = await stage(max_queue=50)
    gateway.warm(server)

    async def visit(number: int) -> None:
        _, writer = await gateway.connect()
        writer.write(post(b"z" * (number * 997 % 5000)))
        await asyncio.sleep(number % 7 / 100)
        writer.transport.abort()

    for _ in range(3):
        await asyncio.gather(*(visit(number) for number in range(40)))
    await left_nothing(gateway, server)
