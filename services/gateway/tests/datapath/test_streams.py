"""Event streams: promises, heartbeats, cuts (behaviour G1, G2, G4)."""

from __future__ import annotations

import asyncio
import json

import pytest

from .conftest import MakeBackend, MakeStage
from .stage import Handler, Stage, ok, post, read_head, read_request, replying, until

STREAM = b'{"stream":true}'
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: max-age=1\r\n"
CHUNKED = SSE_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunks(*parts: bytes, end: bool = True) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")


def dechunked(reply: bytes) -> bytes:
    _, _, rest = reply.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


def error_of(body: bytes) -> dict[str, object]:
    """The error in the closing events of `body`, which must end as behaviour G2 says."""
    assert body.endswith(b"\n\ndata: [DONE]\n\n")
    event = body[: -len(b"\n\ndata: [DONE]\n\n")].rpartition(b"data: ")[2]
    found = json.loads(event)["error"]
    assert isinstance(found, dict)
    return found


async def held_stream(gateway: Stage, body: bytes = STREAM) -> asyncio.Task[bytes]:
    asking = asyncio.create_task(gateway.ask(post(body)))
    await until(lambda: len(gateway.line) == 1)
    return asking


async def test_g4_stream_head_is_sent_at_once_and_forbids_buffering(
    stage: MakeStage, backend: MakeBackend
) -> None:
    more = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED)
        await more.wait()
        writer.write(chunks(b"data: 1\n\n", b"data: [DONE]\n\n"))

    gateway = await stage()
    gateway.warm(await backend(handler))
    reader, writer = await gateway.connect()
    writer.write(post(STREAM))
    head = (await read_head(reader)).lower()
    assert head.count(b"cache-control: no-cache, no-transform\r\n") == 1
    assert head.count(b"cache-control") == 1
    assert b"x-accel-buffering: no\r\n" in head
    more.set()
    assert b"data: [DONE]\n\n" in await asyncio.wait_for(reader.read(-1), 20)


async def test_g1_heartbeat_is_a_comment_with_one_newline(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(CHUNKED + chunks(b"data: 1\n\n", b"data: [DONE]\n\n")))
    gateway = await stage(heartbeat_interval=0.02)
    gateway.cool(server)
    reader, writer = await gateway.connect()
    writer.write(post(STREAM))
    head = await read_head(reader)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"text/event-stream" in head
    gateway.warm(server)
    body = dechunked(head + await asyncio.wait_for(reader.read(-1), 20))
    beats, _, rest = body.partition(b"data: ")
    assert set(beats.splitlines(keepends=True)) == {b": heartbeat\n"}
    assert rest == b"1\n\ndata: [DONE]\n\n"
    assert b"x-noctaya-cold-start: true\r\n" in head


async def test_g1_backend_that_is_quicker_than_a_heartbeat_keeps_its_status(
    stage: MakeStage, backend: MakeBackend
) -> None:
    server = await backend(replying(b"HTTP/1.1 418 Teapot\r\nX-Own: 1\r\nContent-Length: 0\r\n\r\n"))
    gateway = await stage()
    gateway.cool(server)
    asking = await held_stream(gateway)
    gateway.warm(server)
    reply = await asking
    assert reply.startswith(b"HTTP/1.1 418 ")
    assert b"\r\nx-own: 1\r\n" in reply.lower()


@pytest.mark.parametrize(
    "body", [b'{"stream":false}', b'{"stream":"true"}', b"not json", b'{"a":{"stream":true}}']
)
async def test_only_a_true_stream_member_gets_heartbeats(
    stage: MakeStage, backend: MakeBackend, body: bytes
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage(heartbeat_interval=0.01)
    gateway.cool(server)
    asking = await held_stream(gateway, body)
    await asyncio.sleep(0.1)
    gateway.warm(server)
    assert (await asking).endswith(b"\r\n\r\nok")


async def test_g1_heartbeats_can_be_declined(stage: MakeStage, backend: MakeBackend) -> None:
    server = await backend(replying(ok()))
    gateway = await stage(heartbeat_interval=0.01)
    gateway.cool(server)
    asking = asyncio.create_task(gateway.ask(post(STREAM, headers=b"x-noctaya-heartbeats: off\r\n")))
    await until(lambda: len(gateway.line) == 1)
    await asyncio.sleep(0.1)
    gateway.warm(server)
    assert (await asking).endswith(b"\r\n\r\nok")


async def promised(gateway: Stage, handler: Handler, backend: MakeBackend) -> bytes:
    """What a client gets that was promised a stream before `handler` answered it."""
    server = await backend(handler)
    gateway.cool(server)
    reader, writer = await gateway.connect()
    writer.write(post(STREAM, headers=b"Accept-Encoding: gzip\r\n"))
    head = await read_head(reader)
    gateway.warm(server)
    return dechunked(head + await asyncio.wait_for(reader.read(-1), 20))


async def test_g2_error_after_the_promise_is_an_event_with_its_status(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    answer = b'{"error":{"message":"no such model","type":"x","code":"nope"}}'
    raw = b"HTTP/1.1 404 No\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer)
    error = error_of(await promised(gateway, replying(raw), backend))
    assert (error["status"], error["message"], error["code"]) == (404, "no such model", "nope")
    assert gateway.metrics.responses == {404: 1}


async def test_document_after_the_promise_is_one_event(stage: MakeStage, backend: MakeBackend) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    body = await promised(
        gateway, replying(ok(b'{"id":\n1}', headers=b"Content-Type: application/json\r\n")), backend
    )
    assert body.endswith(b'data: {"id":\ndata: 1}\n\ndata: [DONE]\n\n')


async def test_g2_backend_that_dies_after_the_promise_is_an_error_event(
    stage: MakeStage, backend: MakeBackend
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    gateway = await stage(heartbeat_interval=0.02)
    error = error_of(await promised(gateway, handler, backend))
    assert error["code"] == "backend_unavailable"


async def test_promised_stream_asks_for_no_content_coding(stage: MakeStage, backend: MakeBackend) -> None:
    heads: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await read_request(reader))[0])
        writer.write(CHUNKED + chunks(b"data: [DONE]\n\n"))

    gateway = await stage(heartbeat_interval=0.02)
    await promised(gateway, handler, backend)
    assert b"accept-encoding" not in heads[0].lower()


@pytest.mark.parametrize(
    ("sent", "before_error"),
    [
        (b"data: 1\n\n", b"data: 1\n\n"),
        (b"data: 1\r\n\r\n", b"data: 1\r\n\r\n"),
        (b'data: {"a"', b'data: {"a"\n\n'),
        (b"data: 1\n", b"data: 1\n\n\n"),
    ],
)
async def test_g2_stream_that_breaks_ends_with_an_error_event(
    stage: MakeStage, backend: MakeBackend, sent: bytes, before_error: bytes
) -> None:
    gateway = await stage()
    gateway.warm(await backend(replying(CHUNKED + chunks(sent, end=False), close=True)))
    body = dechunked(await gateway.ask(post(STREAM)))
    assert body.startswith(before_error + b'data: {"error":')
    assert error_of(body)["code"] == "backend_interrupted"
    assert b"finish_reason" not in body


async def test_compressed_stream_that_breaks_is_cut(stage: MakeStage, backend: MakeBackend) -> None:
    head = SSE_HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    gateway = await stage()
    gateway.warm(await backend(replying(head + chunks(b"\x1f\x8b", end=False), close=True)))
    reply = await gateway.ask(post(STREAM))
    assert not reply.endswith(b"0\r\n\r\n")
    assert b"error" not in reply


async def test_g2_timeout_after_the_promise_is_an_error_event_and_counts_as_200(stage: MakeStage) -> None:
    gateway = await stage(heartbeat_interval=0.02, activation_timeout=0.3)
    reply = await gateway.ask(post(STREAM))
    error = error_of(dechunked(reply))
    assert error["status"] == 503
    assert gateway.metrics.responses == {200: 1}
    assert sum(gateway.metrics.rejections.values()) == 1
