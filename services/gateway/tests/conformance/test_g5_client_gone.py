"""G5: a client that leaves is noticed in every phase, its upstream request ends, its slot is freed."""

from __future__ import annotations

import asyncio
import time

import pytest

from .conftest import COLD, ONE_ENGINE, Lend
from .harness.backend import Call, hold
from .harness.client import PLAIN_BODY, STREAM_BODY, connected, open_client
from .harness.process import eventually
from .harness.rig import Rig

SMALL = PLAIN_BODY
LARGE = b"x" * (5 << 20)
BODIES = pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small body", "large body"])
WAYS = pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
NOTICED = 1.0
"""Seconds until the backend must have seen the close; 0.1 is typical and printed."""


async def freed(rig: Rig) -> bool:
    return await rig.gateway.admitted() == 0


async def assert_noticed(rig: Rig, call: Call, left: float, record_property: object) -> None:
    took = await call.wire.ended(within=5) - left
    assert callable(record_property)
    record_property("seconds until the backend saw the close", round(took, 4))
    assert took < NOTICED
    await eventually(lambda: freed(rig), within=2)


@BODIES
@WAYS
async def test_g5_client_that_leaves_before_the_answer_ends_its_upstream_request(
    warm: Rig, record_property: object, body: bytes, reset: bool
) -> None:
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request(body=body)
        call = await warm.backend.call()
        assert await warm.gateway.admitted() == 1
        left = time.monotonic()
        client.leave(reset=reset)
        await assert_noticed(warm, call, left, record_property)


@BODIES
@WAYS
async def test_g5_client_that_leaves_mid_answer_ends_its_upstream_request(
    warm: Rig, record_property: object, body: bytes, reset: bool
) -> None:
    async def endless(call: Call) -> None:
        call.send_event_stream_head()
        call.send_chunk(b"data: 1\n\n")
        await hold(call)

    warm.backend.script = endless
    async with connected(warm.gateway.port) as client:
        client.request(body=body)
        call = await warm.backend.call()
        await client.head()
        await client.chunk()
        left = time.monotonic()
        client.leave(reset=reset)
        await assert_noticed(warm, call, left, record_property)


@WAYS
async def test_g5_stalled_reader_that_leaves_ends_its_upstream_request(
    warm: Rig, record_property: object, reset: bool
) -> None:
    """Back-pressure has stopped all reading; the leave must still be seen."""

    async def flood(call: Call) -> None:
        call.send_head(headers=[(b"Content-Length", b"%d" % (200 << 20))])
        piece = b"x" * (1 << 18)
        while call.wire.open:
            call.send(piece)
            await call.wire.flush(within=60)

    warm.backend.script = flood
    async with connected(warm.gateway.port, receive_buffer=65536) as client:
        client.request()
        call = await warm.backend.call()
        await client.head()
        client.wire.pause()
        await asyncio.sleep(0.5)
        left = time.monotonic()
        client.leave(reset=reset)
        await assert_noticed(warm, call, left, record_property)


async def test_g5_client_that_leaves_mid_body_ends_its_upstream_request(
    warm: Rig, record_property: object
) -> None:
    warm.backend.read_bodies = False
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"50000000")], body=None)
        client.send(b"x" * (3 << 20))
        call = await warm.backend.call()
        left = time.monotonic()
        client.leave(reset=True)
        await assert_noticed(warm, call, left, record_property)


async def test_g5_clients_that_leave_while_sending_leave_nothing(warm: Rig) -> None:
    for sent in (
        b"P",
        b"POST /v1/x HTTP/1.1\r\nHo",
        b"POST /v1/x HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        b"\r\n",
    ):
        for reset in (False, True):
            async with connected(warm.gateway.port) as client:
                client.send(sent)
                await asyncio.sleep(0.02)
                client.leave(reset=reset)
    await eventually(lambda: freed(warm))
    assert warm.backend.calls == []
    assert await warm.gateway.demand() == 0


@BODIES
@WAYS
@pytest.mark.parametrize("phase", ["before the head", "after a heartbeat", "not a stream"])
async def test_g5_held_client_that_leaves_frees_its_slot_and_never_reaches_the_backend(
    lend: Lend, phase: str, body: bytes, reset: bool
) -> None:
    interval = "30s" if phase == "before the head" else "100ms"
    rig = await lend(healthy=False, NOCTAYA_HEARTBEAT_INTERVAL=interval, NOCTAYA_ACTIVATION_TIMEOUT="60s")
    timeouts = await rig.gateway.metric("noctaya_gateway_rejections_total", reason="activation_timeout")
    if phase != "not a stream":
        body = STREAM_BODY if body is SMALL else b'{"stream":true,"pad":"' + body + b'"}'
    client = await open_client(rig.gateway.port)
    client.request(body=body)
    await eventually(lambda: held(rig))
    if phase == "after a heartbeat":
        await client.head()
        await client.chunk()
    client.leave(reset=reset)
    await eventually(lambda: freed(rig), within=2)
    assert await rig.gateway.demand() == 1, "the activation lease outlives its client"
    await rig.set_healthy(True)
    await asyncio.sleep(0.2)
    assert rig.backend.calls == []
    assert timeouts == await rig.gateway.metric(
        "noctaya_gateway_rejections_total", reason="activation_timeout"
    )


async def held(rig: Rig) -> bool:
    return await rig.gateway.admitted() == 1


async def test_g5_a_leaving_client_of_a_full_queue_makes_room_at_once(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_MAX_QUEUE="1", **COLD)
    client = await open_client(rig.gateway.port)
    client.request(body=LARGE)
    await eventually(lambda: held(rig))
    assert (await rig.gateway.ask()).status == 429
    client.leave()
    await eventually(lambda: freed(rig), within=1)
    again = await open_client(rig.gateway.port)
    again.request()
    await eventually(lambda: held(rig))
    again.leave()


async def test_g5_many_clients_leaving_together_leave_nothing(cold: Rig) -> None:
    clients = [await open_client(cold.gateway.port) for _ in range(80)]
    for number, client in enumerate(clients):
        client.request(body=STREAM_BODY if number % 2 else SMALL)

    async def all_held() -> bool:
        return await cold.gateway.admitted() == 80

    await eventually(all_held)
    for number, client in enumerate(clients):
        client.leave(reset=number % 3 == 0)
    await eventually(lambda: freed(cold), within=3)
    await cold.set_healthy(True)
    await asyncio.sleep(0.2)
    assert cold.backend.calls == []


@ONE_ENGINE
async def test_g5_pipelining_client_that_leaves_is_noticed(warm: Rig, record_property: object) -> None:
    """Bytes of a second request lie behind the first. The ASGI engine's server stops reading there."""
    warm.backend.script = hold
    async with connected(warm.gateway.port) as client:
        client.request()
        client.request(body=b"y" * 200_000)
        call = await warm.backend.call()
        await asyncio.sleep(0.1)
        left = time.monotonic()
        client.leave()
        await assert_noticed(warm, call, left, record_property)


@ONE_ENGINE
async def test_g5_client_that_leaves_while_its_upload_is_stopped_is_noticed(warm: Rig) -> None:
    """The backend does not read, so the gateway does not read. (A FIN would wait behind the full window.)

    The ASGI interface has no way to see this.
    """
    warm.backend.read_bodies = False

    async def stall(call: Call) -> None:
        call.wire.pause()
        await hold(call)

    warm.backend.script = stall
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"90000000")], body=None)
        client.send(b"x" * (40 << 20))
        call = await warm.backend.call()
        await asyncio.sleep(1)
        left = time.monotonic()
        client.leave(reset=True)
        await eventually(lambda: freed(warm), within=3)
        call.wire.resume()
        await call.wire.ended(within=5)
        assert time.monotonic() - left < 5
