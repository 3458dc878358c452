"""P7: neither a slow reader nor a long upload fills the gateway's memory."""

from __future__ import annotations

import asyncio
import hashlib

from .conftest import Start
from .harness.backend import Call
from .harness.client import connected, open_client
from .harness.message import read_body

MIB = 1 << 20
PER_STREAM = 2 * MIB
"""The reach; checked with as much again for the allocator's slack over all streams."""


async def test_p7_slow_readers_of_a_100_mb_reply_cost_two_megabytes_each(
    start: Start, record_property: object
) -> None:
    rig = await start()

    async def flood(call: Call) -> None:
        call.send_head(headers=[(b"Content-Length", b"%d" % (100 * MIB))])
        piece = b"x" * (256 << 10)
        for _ in range(400):
            if not call.wire.open:
                return
            call.send(piece)
            await call.wire.flush(within=60)

    rig.backend.script = flood
    await rig.gateway.ask(b"GET", b"/healthz", body=None)
    before = rig.gateway.rss()
    clients = [await open_client(rig.gateway.port, receive_buffer=65536) for _ in range(6)]
    for client in clients:
        client.request()
        await client.head()
        client.wire.pause()
    await asyncio.sleep(2)
    grown = rig.gateway.rss() - before
    assert callable(record_property)
    record_property("bytes a stalled stream", grown // len(clients))
    assert grown < 2 * PER_STREAM * len(clients)
    for client in clients:
        client.leave(reset=True)


async def test_p7_a_200_mb_upload_streams_through(start: Start, record_property: object) -> None:
    rig = await start()
    rig.backend.read_bodies = False
    taken: list[int] = []
    digest = hashlib.sha256()

    async def swallow(call: Call) -> None:
        left = call.head.length or 0
        while left:
            await call.wire.wait_for(lambda: len(call.wire.buffer) > 0)
            data = call.wire.take(min(left, len(call.wire.buffer)))
            digest.update(data)
            left -= len(data)
            taken.append(len(data))
        call.reply(b"done")

    rig.backend.script = swallow
    assert (await rig.gateway.ask(b"GET", b"/healthz", body=None)).status == 200
    before = rig.gateway.rss()
    peak = before
    piece = bytes(range(256)) * 1024
    expected = hashlib.sha256()
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"%d" % (200 * MIB))], body=None)
        for number in range(800):
            client.send(piece)
            expected.update(piece)
            await client.wire.flush(within=60)
            if number % 40 == 0:
                peak = max(peak, rig.gateway.rss())
        reply = await client.reply(within=60)
    assert (reply.status, reply.data) == (200, b"done")
    assert sum(taken) == 200 * MIB
    assert digest.digest() == expected.digest()
    assert callable(record_property)
    record_property("bytes grown over the upload", peak - before)
    assert peak - before < 16 * MIB


async def test_p7_an_upload_to_a_backend_that_stalls_stops_the_client(start: Start) -> None:
    """Back-pressure reaches from the backend's socket to the client's."""
    rig = await start()
    rig.backend.read_bodies = False

    async def stall(call: Call) -> None:
        call.wire.pause()
        await asyncio.sleep(1.5)
        call.wire.resume()
        await read_body(call.wire, call.head, response=False, within=60)
        call.reply(b"done")

    rig.backend.script = stall
    before = rig.gateway.rss()
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"%d" % (60 * MIB))], body=None)
        for _ in range(60):
            client.send(b"x" * MIB)
        await asyncio.sleep(1)
        assert rig.gateway.rss() - before < 16 * MIB
        assert (await client.reply(within=60)).status == 200
