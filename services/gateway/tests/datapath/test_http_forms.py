"""HTTP as clients and backends really speak it (behaviour G4)."""

from __future__ import annotations

import asyncio

import pytest

from .conftest import MakeBackend, MakeStage
from .stage import PATIENCE, ok, post, read_head, read_request, replying, until

PROTOCOL = pytest.mark.parametrize("engine", ["protocol"])


async def test_g4_http_1_0_client_gets_the_end_of_a_stream_without_chunks(
    stage: MakeStage, backend: MakeBackend
) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    gateway = await stage()
    gateway.warm(await backend(replying(chunked)))
    reply = await gateway.ask(b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
    head, _, body = reply.partition(b"\r\n\r\n")
    assert body == b"ok"
    assert b"transfer-encoding" not in head.lower()


async def test_g4_expect_100_continue_is_answered_after_authentication(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(ok())))
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert await read_head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"{}")
    assert (await read_head(reader)).startswith(b"HTTP/1.1 200 ")


async def test_g4_chunked_upload_arrives_with_its_length(
    stage: MakeStage, backend: MakeBackend, engine: str
) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(ok())

    gateway = await stage()
    gateway.warm(await backend(handler))
    await gateway.ask(
        b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'3;ext="x"\r\nabc\r\n1\r\nd\r\n0\r\nTrailer-Of: mine\r\n\r\n'
    )
    head, body = seen[0]
    assert body == b"abcd"
    assert b"\r\nContent-Length: 4\r\n" in head
    assert b"trailer-of" not in head.lower() or engine == "asgi"  # uvicorn lists trailers as headers


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(), b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b""),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", b"ok"),
    ],
)
async def test_g4_every_response_framing_passes(
    stage: MakeStage, backend: MakeBackend, raw: bytes, body: bytes
) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(raw, close=b"Length" not in raw and b"chunked" not in raw)))
    reader, writer = await gateway.connect()
    for _ in range(2):
        writer.write(post(close=False))
        head = await read_head(reader)
        while head.startswith(b"HTTP/1.1 1"):
            head = await read_head(reader)
        if b"transfer-encoding: chunked" in head.lower():
            whole = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), PATIENCE)
            lines = whole.split(b"\r\n")
            assert b"".join(lines[1:-3:2]) == body
        else:
            assert await asyncio.wait_for(reader.readexactly(len(body)), PATIENCE) == body


async def test_g4_head_keeps_the_length_and_has_no_body(stage: MakeStage, backend: MakeBackend) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await read_head(reader)
            length = b"Content-Length: 2\r\n\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\n" + (length if head.startswith(b"HEAD") else length + b"ok"))

    gateway = await stage()
    server = await backend(handler)
    gateway.warm(server)
    for _ in range(2):
        reply = await gateway.ask(b"HEAD /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert b"content-length: 2\r\n" in reply.lower()
        assert reply.endswith(b"\r\n\r\n")
        reply = await gateway.ask(b"GET /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert reply.endswith(b"ok")
    assert server.accepted == 1


@PROTOCOL
async def test_g4_early_hints_and_trailers_reach_who_can_take_them(
    stage: MakeStage, backend: MakeBackend
) -> None:
    raw = (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"
    )
    gateway = await stage()
    gateway.warm(await backend(replying(raw)))
    reply = await gateway.ask(post(headers=b"TE: trailers\r\n"))
    assert reply.startswith(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert reply.endswith(b"2\r\nok\r\n0\r\nX-T: 1\r\n\r\n")


async def test_g4_early_response_ends_an_upload(stage: MakeStage, backend: MakeBackend) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nbig")
        await reader.read(-1)

    gateway = await stage()
    gateway.warm(await backend(handler))
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 1_200_000)
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert await asyncio.wait_for(reader.readexactly(3), PATIENCE) == b"big"


async def test_g4_pipelined_requests_are_answered_in_order(stage: MakeStage, backend: MakeBackend) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await read_request(reader)
            await asyncio.sleep(0.01)
            writer.write(ok(body))

    gateway = await stage()
    gateway.warm(await backend(handler))
    requests = [post(b"%d" % number, close=False) for number in range(20)]
    requests.append(post(b"last"))
    reply = await gateway.ask(b"".join(requests))
    bodies = [part.rpartition(b"\r\n\r\n")[2] for part in reply.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [b"%d" % number for number in range(20)] + [b"last"]


@PROTOCOL
async def test_own_paths_and_model_paths_mix_on_one_connection(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(ok())))
    own = b"GET /healthz?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
    reply = await gateway.ask(own + post(close=False) + own + post())
    bodies = [part.rpartition(b"\r\n\r\n")[2] for part in reply.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [b'{"ok":true}', b"ok", b'{"ok":true}', b"ok"]


@PROTOCOL
async def test_g4_upgrade_offer_with_a_body_is_an_ordinary_request(
    stage: MakeStage, backend: MakeBackend
) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(ok())

    gateway = await stage()
    gateway.warm(await backend(handler))
    offer = b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\n%bContent-Length: 6\r\n\r\nabc" % offer)
    await until(lambda: gateway.budget.used == 3)
    writer.write(b"def")
    assert (await read_head(reader)).startswith(b"HTTP/1.1 200 ")
    head, body = seen[0]
    assert body == b"abcdef"
    assert b"upgrade" not in head.lower()
    assert b"http2-settings" not in head.lower()


@PROTOCOL
@pytest.mark.parametrize(
    "raw",
    [
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\nX: b\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nX : b\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/2.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"CONNECT other:443 HTTP/1.1\r\nHost: other\r\n\r\n",
        b"NONSENSE\r\n\r\n",
    ],
)
async def test_g4_what_could_be_read_in_two_ways_is_refused_with_json(
    stage: MakeStage, backend: MakeBackend, raw: bytes
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    gateway.warm(server)
    reply = await gateway.ask(raw + post())
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"\r\n\r\n") == 1
    assert b'"code":"bad_request"' in reply
    assert server.accepted == 0


@PROTOCOL
async def test_endless_request_head_is_431(stage: MakeStage) -> None:
    gateway = await stage()
    reader, writer = await gateway.connect()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n")
    for _ in range(300):
        writer.write(b"X-A: " + b"a" * 2000 + b"\r\n")
    assert (await read_head(reader)).startswith(b"HTTP/1.1 431 ")


@PROTOCOL
@pytest.mark.parametrize("tail", [b"0\r\n", b"1;ext="], ids=["trailers", "chunk extension"])
@pytest.mark.parametrize("endless", [b"X: y\r\n" * 1000, b"z" * 6000], ids=["lines", "one line"])
async def test_g5_endless_trailers_and_extensions_are_refused(
    stage: MakeStage, tail: bytes, endless: bytes
) -> None:
    gateway = await stage()
    reader, writer = await gateway.connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + tail)
    await writer.drain()
    for _ in range(100):
        writer.write(endless)
    head = await read_head(reader)
    assert head.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))


@pytest.mark.parametrize("endless", [b"X: y\r\n" * 1000, b"z" * 6000], ids=["lines", "one line"])
async def test_endless_trailers_of_the_backend_cut_the_response(
    stage: MakeStage, backend: MakeBackend, endless: bytes
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
        while not writer.is_closing():
            writer.write(endless)
            await writer.drain()

    gateway = await stage()
    gateway.warm(await backend(handler))
    reply = await gateway.ask(post())
    assert not reply.endswith(b"0\r\n\r\n")


async def test_own_answers_and_own_paths_carry_the_request_id(stage: MakeStage) -> None:
    gateway = await stage()
    for request in (
        b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Request-Id: mine\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Request-Id: mine\r\n\r\n",
    ):
        assert b"\r\nx-request-id: mine\r\n" in (await gateway.ask(request)).lower()


async def test_g8_draining_gateway_asks_clients_to_connect_anew(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(ok())))
    gateway.gate.draining = True
    reply = await gateway.ask(post(close=False))
    assert b"\r\nconnection: close\r\n" in reply.lower()


@PROTOCOL
async def test_idle_connection_is_closed_in_time_and_a_busy_one_is_not(
    stage: MakeStage, backend: MakeBackend
) -> None:
    answer = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, _ = await read_request(reader)
            if head.startswith(b"POST /slow"):
                await answer.wait()
            writer.write(ok())

    gateway = await stage(header_timeout=0.1)  # idle connections go after 7.5 times that
    gateway.warm(await backend(handler))
    idle, idle_writer = await gateway.connect()
    idle_writer.write(post(close=False))
    await read_head(idle)
    busy, busy_writer = await gateway.connect()
    busy_writer.write(post(path=b"/slow"))
    assert await asyncio.wait_for(idle.read(-1), PATIENCE) == b"ok"
    answer.set()
    assert (await asyncio.wait_for(busy.read(-1), PATIENCE)).endswith(b"ok")


@PROTOCOL
async def test_head_that_does_not_end_is_dropped_in_time(stage: MakeStage) -> None:
    gateway = await stage(header_timeout=0.1)
    assert await gateway.ask(b"POST / HTTP/1.1\r\nHo") == b""
