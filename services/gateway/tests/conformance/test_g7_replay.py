"""G7: a dead pooled connection costs nothing; nothing is ever replayed after a response byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from .harness.backend import Call, Script
from .harness.client import connected
from .harness.message import LAST_CHUNK, chunk
from .harness.rig import Rig

Death = Callable[[Call], None]


def close(call: Call) -> None:
    call.wire.close()


def reset(call: Call) -> None:
    call.wire.reset()


def dying_when_reused(death: Death, *, after: bytes = b"") -> Script:
    """Answers the first request of a connection and dies on its second, having sent `after`."""
    served: set[int] = set()

    async def script(call: Call) -> None:
        if id(call.wire) in served:
            if after:
                call.send(after)
                await call.wire.silent(0.1)
            death(call)
        else:
            served.add(id(call.wire))
            call.reply(call.data)

    return script


async def fill_pool(rig: Rig) -> None:
    """One idle pooled connection."""
    assert (await rig.gateway.ask(body=b"warm-up")).status == 200


@pytest.fixture
def dead_pool(warm: Rig) -> Callable[[Script], Awaitable[Rig]]:
    async def prepare(script: Script) -> Rig:
        warm.backend.script = script
        # Connections of earlier users have served once or more; the first to come must be fresh.
        for wire in warm.backend.wires:
            wire.close()
        await asyncio.sleep(0.1)
        await fill_pool(warm)
        warm.backend.calls.clear()
        return warm

    return prepare


@pytest.mark.parametrize("death", [close, reset])
@pytest.mark.parametrize("body", [b"small", b"x" * (900 << 10)], ids=["small", "900 KiB"])
async def test_g7_a_request_on_a_dead_pooled_connection_is_sent_once_more(
    dead_pool: Callable[[Script], Awaitable[Rig]], death: Death, body: bytes
) -> None:
    rig = await dead_pool(dying_when_reused(death))
    replays = await rig.gateway.metric("noctaya_gateway_replays_total")
    reply = await rig.gateway.ask(body=body)
    assert (reply.status, reply.data) == (200, body)
    assert len(rig.backend.calls) == 2
    assert rig.backend.calls[0].wire is not rig.backend.calls[1].wire
    assert await rig.gateway.metric("noctaya_gateway_replays_total") == replays + 1


@pytest.mark.parametrize("after", [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_g7_nothing_is_replayed_after_a_response_byte(
    dead_pool: Callable[[Script], Awaitable[Rig]], after: bytes
) -> None:
    rig = await dead_pool(dying_when_reused(close, after=after))
    reply = await rig.gateway.ask()
    assert reply.status == 502
    assert len(rig.backend.calls) == 1


async def test_g7_a_fresh_connection_that_dies_is_not_retried(warm: Rig) -> None:
    async def die(call: Call) -> None:
        call.wire.close()

    for wire in warm.backend.wires:
        wire.close()
    await asyncio.sleep(0.1)
    warm.backend.script = die
    assert (await warm.gateway.ask()).status == 502
    assert len(warm.backend.calls) == 1


async def test_g7_a_request_is_sent_at_most_twice(dead_pool: Callable[[Script], Awaitable[Rig]]) -> None:
    async def always_die(call: Call) -> None:
        call.wire.close()

    rig = await dead_pool(dying_when_reused(close))
    rig.backend.script = always_die
    assert (await rig.gateway.ask()).status == 502
    assert len(rig.backend.calls) == 2


async def test_g7_a_body_that_was_streamed_is_not_replayed_in_part(
    dead_pool: Callable[[Script], Awaitable[Rig]],
) -> None:
    """More than the buffer went through already: the request can't be whole any more."""
    rig = await dead_pool(dying_when_reused(close))
    rig.backend.read_bodies = False
    rig.backend.script = close_soon
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Transfer-Encoding", b"chunked")], body=None)
        for _ in range(30):
            client.send(chunk(b"x" * 100_000))
        await asyncio.sleep(0.2)
        client.send(LAST_CHUNK)
        reply = await client.reply()
    assert reply.status == 502
    assert len(rig.backend.calls) == 1


async def close_soon(call: Call) -> None:
    await call.wire.wait_for(lambda: len(call.wire.buffer) > 0)
    call.wire.close()


async def test_g7_idle_connections_closed_by_the_backend_are_never_seen_by_clients(warm: Rig) -> None:
    """Every answer is followed by a close a moment later, as servers with a short keep-alive do."""

    async def closing_soon(call: Call) -> None:
        call.reply(call.data)
        asyncio.get_running_loop().call_later(0.004, call.wire.close)

    warm.backend.script = closing_soon
    async with connected(warm.gateway.port) as client:
        for number in range(150):
            reply = await client.exchange(body=b"%d" % number)
            assert (reply.status, reply.data) == (200, b"%d" % number)
            await asyncio.sleep(0.003 if number % 3 else 0.006)


async def test_g7_connection_close_of_the_backend_is_obeyed(warm: Rig) -> None:
    async def last(call: Call) -> None:
        call.reply(headers=[(b"Connection", b"close")])
        await call.wire.ended(within=5)

    warm.backend.script = last
    for _ in range(5):
        assert (await warm.gateway.ask()).status == 200
    assert len({id(call.wire) for call in warm.backend.calls}) == 5
