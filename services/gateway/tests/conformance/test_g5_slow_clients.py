"""G5: a slow or hostile client holds nothing: no slot, no memory, no time of others."""

from __future__ import annotations

import asyncio
import time

import pytest

from .conftest import COLD, Lend, Start
from .harness.backend import Call
from .harness.client import connected, open_client, request_bytes
from .harness.message import chunk
from .harness.process import eventually
from .harness.rig import Rig
from .harness.wire import WireEndError
from .test_g2_errors import assert_retry_after, key_file

PROMISED = request_bytes(headers=[(b"Content-Length", b"1000")], body=None)


@pytest.mark.parametrize("state", ["warm", "cold"])
async def test_g5_a_slow_body_holds_no_slot_and_is_no_demand(lend: Lend, state: str) -> None:
    rig = await lend(healthy=state == "warm", NOCTAYA_MAX_QUEUE="1", **COLD)
    slow = [await open_client(rig.gateway.port) for _ in range(5)]
    for client in slow:
        client.send(PROMISED + b"half")
    await asyncio.sleep(0.2)
    assert await rig.gateway.admitted() == 0
    assert await rig.gateway.demand() == 0
    if state == "warm":
        assert (await rig.gateway.ask()).status == 200
    assert len(rig.backend.calls) == (1 if state == "warm" else 0)
    for client in slow:
        client.leave()


async def test_g5_a_body_that_stops_is_408_and_the_connection_ends(lend: Lend) -> None:
    rig = await lend(NOCTAYA_BODY_TIMEOUT="500ms")
    async with connected(rig.gateway.port) as client:
        client.send(PROMISED + b"half")
        reply = await client.reply()
        assert reply.status == 408
        assert reply.error["code"] == "body_timeout"
        await client.wire.ended()
    assert await rig.gateway.metric("noctaya_gateway_requests_total", code="408") >= 1
    assert rig.backend.calls == []


async def test_g5_a_body_that_trickles_does_not_extend_its_deadline(lend: Lend) -> None:
    rig = await lend(NOCTAYA_BODY_TIMEOUT="500ms")
    begun = time.monotonic()
    async with connected(rig.gateway.port) as client:
        client.send(PROMISED)
        with pytest.raises(WireEndError):
            while time.monotonic() - begun < 8:
                client.send(b"x")
                await asyncio.sleep(0.05)
                if client.wire.buffer:
                    assert (await client.reply()).status == 408
                    await client.wire.exactly(1)


async def test_g5_a_large_body_that_moves_is_given_time(start: Start) -> None:
    """Two megabytes a second for longer than the deadline of one megabyte."""
    rig = await start(NOCTAYA_BODY_TIMEOUT="1s")
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"%d" % (4 << 20))], body=None)
        for _ in range(16):
            client.send(b"x" * (1 << 18))
            await asyncio.sleep(0.12)
        assert (await client.reply()).status == 200
    assert len((await rig.backend.call()).data) == 4 << 20


async def test_g5_too_large_is_said_before_the_body_is_sent(lend: Lend) -> None:
    rig = await lend(NOCTAYA_MAX_BODY_BYTES="1000")
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"1001")], body=None)
        reply = await client.reply()
        assert reply.status == 413
        assert reply.error["code"] == "request_too_large"
    assert await rig.gateway.admitted() == 0


async def test_g5_too_large_in_chunks_is_said_as_soon_as_it_is_known(lend: Lend) -> None:
    rig = await lend(NOCTAYA_MAX_BODY_BYTES="1000")
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Transfer-Encoding", b"chunked")], body=None)
        client.send(chunk(b"x" * 900))
        assert await client.wire.silent(0.1)
        client.send(chunk(b"x" * 200))
        reply = await client.reply()
        assert reply.status == 413
        await client.wire.ended()
    assert rig.backend.calls == []


async def test_g5_413_is_readable_while_the_client_still_sends(lend: Lend) -> None:
    """Closing with unread bytes in the socket resets it, and the client never sees why."""
    rig = await lend(NOCTAYA_MAX_BODY_BYTES="1000")
    for _ in range(5):
        async with connected(rig.gateway.port) as client:
            client.request(body=b"x" * (2 << 20))
            reply = await client.reply()
            assert reply.status == 413


async def test_g5_authentication_comes_before_the_body(
    lend: Lend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rig = await lend(NOCTAYA_CLIENT_API_KEY_FILE=key_file(tmp_path_factory), NOCTAYA_MAX_BODY_BYTES="1000")
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"5000")], body=None)
        assert (await client.reply()).status == 401


async def test_g5_buffered_bytes_are_bounded_and_given_back(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_MAX_BUFFERED_BYTES="1000000", **COLD)
    first = await open_client(rig.gateway.port)
    first.request(body=b"x" * 700_000)

    async def buffered() -> bool:
        return await rig.gateway.metric("noctaya_gateway_buffered_bytes") >= 700_000

    await eventually(buffered)
    reply = await rig.gateway.ask(body=b"x" * 400_000)
    assert reply.status == 503
    assert reply.error["code"] == "buffer_full"
    assert_retry_after(reply)
    first.leave()

    async def given_back() -> bool:
        return await rig.gateway.metric("noctaya_gateway_buffered_bytes") == 0

    await eventually(given_back)
    second = await open_client(rig.gateway.port)
    second.request(body=b"x" * 400_000)
    await eventually(lambda: held(rig, 1))
    rig.backend.set_healthy(True)
    assert (await second.reply()).status == 200
    await eventually(given_back)
    second.leave()


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def test_g5_half_sent_bodies_count_against_the_budget_too(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_MAX_BUFFERED_BYTES="1000000", **COLD)
    slow = [await open_client(rig.gateway.port) for _ in range(10)]
    for client in slow:
        client.request(headers=[(b"Content-Length", b"900000")], body=None)
        client.send(b"x" * 300_000)
    refused = 0
    for client in slow:
        try:
            if (await client.reply(within=1)).status == 503:
                refused += 1
        except TimeoutError:
            pass
    assert refused >= 7
    assert await rig.gateway.metric("noctaya_gateway_buffered_bytes") <= 1_000_000
    for client in slow:
        client.leave()


async def test_g5_slow_headers_are_cut_and_hold_nothing(warm: Rig) -> None:
    """The header deadline is 10 s; one test pays for all the ways to be slow."""
    starts = [b"", b"POST", b"POST /v1/x HTTP/1.1\r\nHost: m\r\nX-Slow:", b"GET / HTTP/1.1\r\n"]
    clients = [await open_client(warm.gateway.port) for _ in starts]
    for client, begin in zip(clients, starts, strict=True):
        client.send(begin)
    for _ in range(22):
        for client in clients[1:]:
            client.send(b"z")
        await asyncio.sleep(0.5)
    assert (await warm.gateway.ask()).status == 200
    for client, begin in zip(clients, starts, strict=True):
        if begin:
            await client.wire.ended(within=5)
        client.leave()


async def test_g5_headers_up_to_a_generous_size_pass(warm: Rig) -> None:
    headers = [(b"X-Pad-%d" % number, b"y" * 1000) for number in range(60)]
    assert (await warm.gateway.ask(headers=headers)).status == 200
    assert len((await warm.backend.call()).head.all("x-pad-59")) == 1


@pytest.mark.parametrize(
    "flood",
    [b"X-Pad: " + b"y" * (8 << 20) + b"\r\n", b"X-A: b\r\n" * 400_000],
    ids=["one huge header", "very many headers"],
)
async def test_g5_endless_headers_are_refused_without_growing(start: Start, flood: bytes) -> None:
    rig = await start()
    await rig.gateway.ask()
    rig.backend.reset()
    before = rig.gateway.rss()
    async with connected(rig.gateway.port) as client:
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: m\r\n")
        try:
            for begin in range(0, len(flood), 1 << 16):
                client.send(flood[begin : begin + (1 << 16)])
                await client.wire.flush()
            client.send(b"Content-Length: 0\r\n\r\n")
            assert (await client.head(within=20)).status in {400, 431}
        except WireEndError:
            pass
    assert rig.gateway.rss() - before < (24 << 20)
    assert rig.backend.calls == []
    assert (await rig.gateway.ask()).status == 200


async def test_g5_a_stalled_reader_does_not_hold_up_others_nor_fill_memory(warm: Rig) -> None:
    async def flood(call: Call) -> None:
        if call.head.target == b"/v1/big":
            call.reply(b"x" * (60 << 20))
        else:
            call.reply()

    warm.backend.script = flood
    before = warm.gateway.rss()
    client = await open_client(warm.gateway.port, receive_buffer=65536)
    client.request(target=b"/v1/big")
    await client.head()
    client.wire.pause()
    await asyncio.sleep(0.5)
    for _ in range(5):
        assert (await warm.gateway.ask()).status == 200
    assert warm.gateway.rss() - before < (16 << 20)
    client.leave(reset=True)
