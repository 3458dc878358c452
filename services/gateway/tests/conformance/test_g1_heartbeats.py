"""G1: heartbeats no SDK rejects."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from .conftest import COLD, ONE_ENGINE, Lend
from .harness.backend import JSON_REPLY, SSE_PIECES, Call
from .harness.client import STREAM_BODY, Client, connected, open_client
from .harness.events import HEARTBEAT, split_heartbeats
from .harness.rig import Rig

SSE = b"".join(SSE_PIECES)


async def held_stream(rig: Rig, **options: Any) -> Client:
    client = await open_client(rig.gateway.port)
    client.request(body=STREAM_BODY, **options)
    return client


async def test_g1_heartbeat_is_a_comment_with_one_newline_and_never_a_blank_line(cold: Rig) -> None:
    client = await held_stream(cold)
    assert (await client.head()).status == 200
    beats = [await client.chunk() for _ in range(4)]
    assert beats == [HEARTBEAT] * 4
    client.leave()


async def test_g1_head_is_sent_only_when_the_first_heartbeat_is_due(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="700ms", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    sent = time.monotonic()
    client = await held_stream(rig)
    await client.wire.exactly(1)
    assert time.monotonic() - sent >= 0.65
    client.leave()


async def test_g1_committed_head_is_an_unbuffered_event_stream(cold: Rig) -> None:
    client = await held_stream(cold)
    head = await client.head()
    assert head.status == 200
    assert (head.one("content-type") or b"").split(b";")[0] == b"text/event-stream"
    assert head.one("cache-control") == b"no-cache, no-transform"
    assert head.one("x-accel-buffering") == b"no"
    assert head.chunked
    assert head.one("content-length") is None
    assert head.one("content-encoding") is None
    assert head.one("x-request-id")
    client.leave()


async def test_g1_backend_bytes_follow_the_heartbeats_unchanged(cold: Rig) -> None:
    client = await held_stream(cold)
    await client.head()
    first = await client.chunk()
    cold.backend.set_healthy(True)
    body = await client.stream_to_end()
    assert body.complete
    beats, rest = split_heartbeats(first + body.data)
    assert beats >= 1
    assert rest == SSE
    client.leave()


async def test_g1_no_heartbeat_after_the_first_backend_byte(cold: Rig) -> None:
    async def slow(call: Call) -> None:
        await call.stream(pause=0.6)

    cold.backend.script = slow
    client = await held_stream(cold)
    await client.head()
    first = await client.chunk()
    cold.backend.set_healthy(True)
    body = await client.stream_to_end()
    _, rest = split_heartbeats(first + body.data)
    assert rest == SSE
    client.leave()


async def test_g1_no_heartbeat_inside_an_event_whose_bytes_come_apart(cold: Rig) -> None:
    async def torn(call: Call) -> None:
        call.send_event_stream_head()
        for piece in (SSE[:7], SSE[7:30], SSE[30:]):
            call.send_chunk(piece)
            await asyncio.sleep(0.6)
        call.end_chunks()

    cold.backend.script = torn
    client = await held_stream(cold)
    await client.head()
    first = await client.chunk()
    cold.backend.set_healthy(True)
    body = await client.stream_to_end()
    assert split_heartbeats(first + body.data)[1] == SSE
    client.leave()


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request", b"429 Too Many Requests"])
async def test_g1_ready_before_the_first_heartbeat_keeps_status_and_headers(
    lend: Lend, status: bytes
) -> None:
    rig = await lend(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL="30s", NOCTAYA_ACTIVATION_TIMEOUT="60s")

    async def own(call: Call) -> None:
        call.reply(
            b'{"own":1}', status=status, headers=[(b"Content-Type", b"application/own"), (b"X-Own", b"y")]
        )

    rig.backend.script = own
    client = await held_stream(rig)
    assert await client.wire.silent(0.2)
    rig.backend.set_healthy(True)
    reply = await client.reply()
    assert reply.head.start_line == b"HTTP/1.1 " + status
    assert reply.head.one("content-type") == b"application/own"
    assert reply.head.one("x-own") == b"y"
    assert reply.data == b'{"own":1}'
    client.leave()


@pytest.mark.parametrize("value", [b"off", b"OFF"])
async def test_g1_a_request_can_opt_out_of_heartbeats(cold: Rig, value: bytes) -> None:
    client = await held_stream(cold, headers=[(b"x-noctaya-heartbeats", value)])
    assert await client.wire.silent(0.9)

    async def refuse(call: Call) -> None:
        call.reply(b'{"no":1}', status=b"404 Not Found")

    cold.backend.script = refuse
    cold.backend.set_healthy(True)
    assert (await client.reply()).status == 404
    client.leave()


async def test_g1_a_service_can_switch_heartbeats_off(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_HEARTBEATS="false", **COLD)
    client = await held_stream(rig)
    assert await client.wire.silent(0.9)
    rig.backend.set_healthy(True)
    reply = await client.reply()
    assert (reply.status, reply.data) == (200, SSE)
    client.leave()


@ONE_ENGINE
async def test_g1_http_1_0_client_gets_heartbeats_without_chunks(cold: Rig) -> None:
    client = await held_stream(cold, version=b"HTTP/1.0")
    head = await client.head()
    assert head.status == 200
    assert not head.chunked
    assert await client.wire.exactly(2 * len(HEARTBEAT)) == HEARTBEAT * 2
    cold.backend.set_healthy(True)
    assert split_heartbeats(await client.wire.to_end())[1] == SSE
    client.leave()


async def test_g1_http_1_0_client_gets_the_whole_stream_without_chunks(cold: Rig) -> None:
    """On the ASGI engine in one piece: its server knows no other way to answer HTTP/1.0 without a length."""
    client = await held_stream(cold, version=b"HTTP/1.0")
    await asyncio.sleep(0.6)
    cold.backend.set_healthy(True)
    head = await client.head()
    assert head.status == 200
    assert not head.chunked
    assert split_heartbeats(await client.wire.to_end())[1] == SSE
    client.leave()


NOT_STREAMS = {
    "stream false": b'{"stream":false}',
    "string": b'{"stream":"true"}',
    "one": b'{"stream":1}',
    "null": b'{"stream":null}',
    "nested": b'{"options":{"stream":true}}',
    "array": b'[{"stream":true}]',
    "not json": b'{"stream":true',
    "trailing": b'{"stream":true} x',
    "in a string": b'{"content":"\\"stream\\":true"}',
    "larger than 8 MiB": b'{"stream":true,"pad":"' + b"x" * (8 << 20) + b'"}',
}


@pytest.mark.parametrize("body", NOT_STREAMS.values(), ids=NOT_STREAMS.keys())
async def test_g1_only_a_request_that_asks_for_a_stream_gets_heartbeats(cold: Rig, body: bytes) -> None:
    async with connected(cold.gateway.port) as client:
        client.request(body=body)
        await client.wire.flush()
        assert await client.wire.silent(0.7)
        cold.backend.set_healthy(True)
        reply = await client.reply()
        assert reply.status == 200
        assert reply.data in {JSON_REPLY, SSE}
    assert (await cold.backend.call()).data == body


STREAMS = {
    "other key case": b'{"STREAM":true}',
    "white space": b' \n{ "a" : [1, {"stream": false}] , "stream"\t: true }\n',
    "unicode": '{"messages":"żółw 🐢","stream":true}'.encode(),
    "escaped key": b'{"str\\u0065am":true}',
    "7 MiB": b'{"pad":"' + b"x" * (7 << 20) + b'","stream":true}',
}


@pytest.mark.parametrize("body", STREAMS.values(), ids=STREAMS.keys())
async def test_g1_stream_is_found_however_the_json_is_written(cold: Rig, body: bytes) -> None:
    assert json.loads(body)
    async with connected(cold.gateway.port) as client:
        client.request(target=b"/any/path", body=body, headers=[(b"Content-Type", b"text/plain")])
        assert (await client.head()).status == 200
        assert await client.chunk() == HEARTBEAT
