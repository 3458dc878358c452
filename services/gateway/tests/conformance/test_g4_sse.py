"""G4: event streams are neither buffered nor compressed nor cached on their way."""

from __future__ import annotations

import pytest

from .harness.backend import SSE_PIECES, Call, hold
from .harness.client import STREAM_BODY, connected
from .harness.message import Header
from .harness.rig import Rig


@pytest.mark.parametrize(
    "own",
    [[], [(b"Cache-Control", b"max-age=60")], [(b"X-Accel-Buffering", b"yes")]],
    ids=["none", "cache", "accel"],
)
@pytest.mark.parametrize("content_type", [b"text/event-stream", b"text/event-stream; charset=utf-8"])
async def test_g4_event_streams_say_that_nobody_may_buffer_them(
    warm: Rig, own: list[Header], content_type: bytes
) -> None:
    async def script(call: Call) -> None:
        call.send_head(headers=[(b"Content-Type", content_type), *own, (b"Transfer-Encoding", b"chunked")])
        call.send_chunk(b"data: [DONE]\n\n")
        call.end_chunks()

    warm.backend.script = script
    reply = await warm.gateway.ask(body=STREAM_BODY, headers=[(b"Accept-Encoding", b"gzip")])
    assert reply.head.one("content-type") == content_type
    assert reply.head.one("x-accel-buffering") == b"no"
    assert reply.head.one("cache-control") == b"no-cache, no-transform"
    assert reply.head.one("content-encoding") is None


async def test_g4_other_answers_get_no_stream_headers(warm: Rig) -> None:
    reply = await warm.gateway.ask()
    assert reply.head.one("x-accel-buffering") is None
    assert reply.head.one("cache-control") is None


async def test_g4_every_event_arrives_before_the_next_is_sent(warm: Rig) -> None:
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        call = await warm.backend.call()
        call.send_event_stream_head()
        assert (await client.head()).status == 200
        for number in range(50):
            event = b"data: %d\n\n" % number
            call.send_chunk(event)
            assert await client.chunk() == event
        call.end_chunks()
        assert await client.chunk() == b""
        call.finish()


async def test_g4_head_arrives_before_the_first_event(warm: Rig) -> None:
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        call = await warm.backend.call()
        call.send_event_stream_head()
        assert (await client.head()).status == 200
        call.end_chunks()
        assert await client.chunk() == b""
        call.finish()


async def test_g4_streams_of_any_framing_arrive_whole(warm: Rig) -> None:
    whole = b"".join(SSE_PIECES)

    async def by_close(call: Call) -> None:
        call.send_head(headers=[(b"Content-Type", b"text/event-stream"), (b"Connection", b"close")])
        call.send(whole)
        call.wire.close()

    async def by_length(call: Call) -> None:
        call.reply(whole, headers=[(b"Content-Type", b"text/event-stream")])

    for script in (by_close, by_length):
        warm.backend.script = script
        reply = await warm.gateway.ask(body=STREAM_BODY)
        assert reply.body.complete
        assert reply.data == whole


async def test_g4_comments_ids_and_retries_of_the_backend_pass(warm: Rig) -> None:
    odd = [
        b"retry: 100\n",
        b"id: 7\n",
        b": ping\n\n",
        b"event: x\ndata: a\ndata: b\r\n\r\n",
        b"\n\n\n",
        b"data: [DONE]\n\n",
    ]

    async def script(call: Call) -> None:
        await call.stream(odd)

    warm.backend.script = script
    reply = await warm.gateway.ask(body=STREAM_BODY)
    assert reply.data == b"".join(odd)
