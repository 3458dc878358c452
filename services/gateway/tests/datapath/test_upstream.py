"""Backend connections: reuse, replay, malformed answers, addresses that leave."""

from __future__ import annotations

import asyncio

import pytest

from .conftest import MakeBackend, MakeStage
from .stage import PATIENCE, ok, post, read_head, read_request, replying, until


async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request and hang up without saying so first."""
    await read_request(reader)
    writer.write(ok())


async def test_g7_request_on_a_dead_pooled_connection_is_sent_once_more(
    stage: MakeStage, backend: MakeBackend
) -> None:
    bodies: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = True
        while True:
            _, body = await read_request(reader)
            bodies.append(body)
            if not first:
                writer.transport.abort()
                return
            writer.write(ok())
            first = False

    server = await backend(handler)
    gateway = await stage()
    gateway.warm(server)
    assert (await gateway.ask(post(b"1"))).endswith(b"ok")
    assert (await gateway.ask(post(b"2"))).endswith(b"ok")
    assert bodies == [b"1", b"2", b"2"]
    assert server.accepted == 2
    assert gateway.metrics.replays == 1


async def test_g7_nothing_is_sent_again_after_a_response_byte(stage: MakeStage, backend: MakeBackend) -> None:
    seen = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        await read_request(reader)
        seen += 1
        writer.write(ok())
        await read_request(reader)
        seen += 1
        writer.write(b"HTTP/1.1 2")
        await writer.drain()

    gateway = await stage()
    gateway.warm(await backend(handler))
    assert (await gateway.ask(post())).endswith(b"ok")
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert seen == 2
    assert gateway.metrics.upstream_errors == {"cut": 1}


async def test_g7_fresh_connection_that_dies_is_not_tried_again(
    stage: MakeStage, backend: MakeBackend
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    server = await backend(handler)
    gateway = await stage()
    gateway.warm(server)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert b'"code":"backend_unavailable"' in reply
    assert server.accepted == 1


async def test_backend_that_closes_idle_connections_costs_no_request(
    stage: MakeStage, backend: MakeBackend
) -> None:
    server = await backend(answer_once)
    gateway = await stage()
    gateway.warm(server)
    for _ in range(20):
        assert (await gateway.ask(post())).endswith(b"ok")
    assert gateway.metrics.responses == {200: 20}


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    ],
)
async def test_malformed_response_is_502_and_ends_its_connection(
    stage: MakeStage, backend: MakeBackend, raw: bytes
) -> None:
    server = await backend(replying(raw))
    gateway = await stage()
    gateway.warm(server)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 502 ")
    await until(lambda: gateway.pool.open_connections == 0)
    assert server.open == 0 or await gone(server)


async def gone(server: object) -> bool:
    await until(lambda: server.open == 0)  # type: ignore[attr-defined]
    return True


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"junk"])
async def test_bytes_nobody_asked_for_end_the_connection(
    stage: MakeStage, backend: MakeBackend, extra: bytes
) -> None:
    server = await backend(replying(ok() + extra))
    gateway = await stage()
    gateway.warm(server)
    for _ in range(3):
        assert (await gateway.ask(post())).endswith(b"\r\n\r\nok")
    assert server.accepted == 3


async def test_bytes_that_come_while_idle_end_the_connection(stage: MakeStage, backend: MakeBackend) -> None:
    say = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(ok())
        await say.wait()
        writer.write(ok(b"evil"))
        await reader.read(-1)

    server = await backend(handler)
    gateway = await stage()
    gateway.warm(server)
    assert (await gateway.ask(post())).endswith(b"ok")
    say.set()
    await until(lambda: gateway.pool.open_connections == 0)
    say.clear()
    assert (await gateway.ask(post())).endswith(b"\r\n\r\nok")


async def test_response_that_ends_early_cuts_the_client(stage: MakeStage, backend: MakeBackend) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", close=True)))
    reply = await gateway.ask(post())
    assert reply.endswith(b"\r\n\r\nhalf")
    assert gateway.metrics.responses == {502: 1}


async def test_idle_connections_to_an_address_that_left_are_dropped(
    stage: MakeStage, backend: MakeBackend
) -> None:
    old, new = await backend(replying(ok())), await backend(replying(ok()))
    gateway = await stage()
    gateway.warm(old)
    await gateway.ask(post())
    gateway.warm(new)
    await until(lambda: old.open == 0)
    assert (await gateway.ask(post())).endswith(b"ok")
    assert new.accepted == 1


async def test_idle_connections_age(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok()))
    gateway = await stage(idle_seconds=0.05)
    gateway.warm(server)
    await gateway.ask(post())
    await until(lambda: server.open == 0)
    assert gateway.pool.idle_connections == 0


async def test_slow_reader_stops_the_backend(stage: MakeStage, backend: MakeBackend) -> None:
    sent = 0
    total = 64 * 1024 * 1024

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while sent < total:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    gateway = await stage()
    gateway.warm(await backend(handler))
    reader, writer = await gateway.connect()
    writer.write(post())
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 200 ")
    before = -1
    while before != sent:
        before = sent
        await asyncio.sleep(0.3)
    assert sent < total
    left = total
    while left:
        left -= len(await asyncio.wait_for(reader.read(1 << 20), PATIENCE))
    assert sent == total


async def test_slow_backend_stops_the_client(stage: MakeStage, backend: MakeBackend) -> None:
    total = 64 * 1024 * 1024
    go = asyncio.Event()
    got = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        await read_head(reader)
        await go.wait()
        while got < total:
            got += len(await reader.read(1 << 20))
        writer.write(ok())

    gateway = await stage()
    gateway.warm(await backend(handler))
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % total)
    sent = 0

    async def send() -> None:
        nonlocal sent
        while sent < total:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    sending = asyncio.create_task(send())
    before = -1
    while before != sent:
        before = sent
        await asyncio.sleep(0.3)
    assert sent < total
    assert gateway.budget.used <= 2 * 1024 * 1024
    go.set()
    await asyncio.wait_for(sending, PATIENCE)
    assert (await asyncio.wait_for(reader.read(-1), PATIENCE)).endswith(b"ok")
    assert got == total


async def test_chunked_upload_is_streamed_in_chunks_once_it_is_large(
    stage: MakeStage, backend: MakeBackend
) -> None:
    heads: list[bytes] = []
    bodies: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_head(reader))
        body = b""
        while size := int((await reader.readline()).strip(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        bodies.append(body)
        writer.write(ok())

    gateway = await stage()
    gateway.warm(await backend(handler))
    piece = b"p" * 100_000
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for _ in range(30))
    head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await gateway.ask(head + chunks + b"0\r\n\r\n")).endswith(b"ok")
    assert bodies == [piece * 30]
    assert b"Transfer-Encoding: chunked\r\n" in heads[0]


@pytest.mark.parametrize("engine", ["protocol"])
async def test_pipelining_client_that_reads_nothing_stops_the_backend(
    stage: MakeStage, backend: MakeBackend
) -> None:
    """Each response alone is over the mark at which the client counts as slow."""
    answered = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        while True:
            await read_request(reader)
            writer.write(ok(b"x" * 100_000))
            await writer.drain()
            answered += 1

    gateway = await stage()
    gateway.warm(await backend(handler))
    _, writer = await gateway.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(post(close=False) * 400)
    before = -1
    while before != answered:
        before = answered
        await asyncio.sleep(0.3)
    assert 0 < answered < 250
    writer.transport.abort()
