"""G8: drain is real: no rollout truncates a stream, and the process ends cleanly and soon."""

from __future__ import annotations

import asyncio
import signal
import time

import grpc
import pytest

from .conftest import COLD, Start
from .harness.backend import SSE_PIECES, Call, hold
from .harness.client import STREAM_BODY, ask, connected, open_client
from .harness.events import error_tail, split_heartbeats
from .harness.keda import Keda
from .harness.process import eventually
from .harness.rig import Rig
from .test_g3_websocket import REALTIME, UPGRADE, accept

SSE = b"".join(SSE_PIECES)


async def readyz(rig: Rig) -> int:
    return (await ask(rig.gateway.port, b"GET", b"/readyz", body=None)).status


async def test_g8_twenty_streams_end_whole_and_the_exit_is_0(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="300ms", NOCTAYA_DRAIN_TIMEOUT="20s")

    async def slow(call: Call) -> None:
        await call.stream([*SSE_PIECES[:1] * 20, *SSE_PIECES], pause=0.1)

    rig.backend.script = slow
    clients = [await open_client(rig.gateway.port) for _ in range(20)]
    for client in clients:
        client.request(body=STREAM_BODY)
    await rig.backend.call(20)
    rig.gateway.terminate()
    for client in clients:
        await client.head()
    bodies = await asyncio.gather(*(client.stream_to_end(within=30) for client in clients))
    assert all(body.complete and body.data.endswith(SSE) for body in bodies)
    for client in clients:
        client.leave()
    assert await rig.gateway.exit_code() == 0


async def test_g8_lame_duck_fails_readiness_and_still_accepts(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="2s")
    assert await readyz(rig) == 200
    rig.gateway.terminate()

    async def failing() -> bool:
        return await readyz(rig) == 503

    await eventually(failing, within=2)
    assert (await ask(rig.gateway.port, b"GET", b"/healthz", body=None)).status == 200
    assert (await rig.gateway.ask()).status == 200
    assert await rig.gateway.exit_code(within=15) == 0
    with pytest.raises(OSError):
        await open_client(rig.gateway.port)


async def test_g8_row_g15_idle_gateway_ends_within_two_seconds(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="100ms")
    idle = await open_client(rig.gateway.port)
    assert (await idle.exchange()).status == 200
    begun = time.monotonic()
    rig.gateway.terminate()
    assert await rig.gateway.exit_code() == 0
    assert time.monotonic() - begun < 5
    await idle.wire.ended()
    idle.leave()


async def test_g8_row_g15_connected_keda_does_not_hold_up_the_end(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="100ms")
    async with Keda(rig.gateway.scaler_port) as keda:
        keda.watch()
        await keda.said(False)
        begun = time.monotonic()
        rig.gateway.terminate()
        assert await keda.stream_ended() is grpc.StatusCode.OK
        assert await rig.gateway.exit_code() == 0
        assert time.monotonic() - begun < 5


async def test_g8_keda_is_told_of_demand_as_long_as_a_request_is_in_flight(start: Start) -> None:
    """A scale-in of the gateway must not scale the model in under a stream that is being drained."""
    rig = await start(NOCTAYA_LAME_DUCK="1s")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as client:
        client.request()
        call = await rig.backend.call()
        async with Keda(rig.gateway.scaler_port) as keda:
            keda.watch()
            await keda.said(True)
            rig.gateway.terminate()
            await asyncio.sleep(0.5)
            answered = time.monotonic()
            call.reply()
            assert (await client.reply()).status == 200
            assert await keda.stream_ended(within=15) is grpc.StatusCode.OK
            assert all(value for at, value in keda.seen if at < answered)
    assert await rig.gateway.exit_code() == 0


@pytest.mark.parametrize("kind", ["plain", "stream"])
async def test_g8_held_requests_are_served_when_the_model_wakes_during_the_drain(
    start: Start, kind: str
) -> None:
    rig = await start(healthy=False, NOCTAYA_DRAIN_TIMEOUT="15s", **COLD)
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY if kind == "stream" else b"{}")
        await eventually(lambda: held(rig))
        rig.gateway.terminate()
        await asyncio.sleep(0.6)
        rig.backend.set_healthy(True)
        reply = await client.reply()
        assert reply.status == 200
        assert reply.body.complete
        if kind == "stream":
            assert split_heartbeats(reply.data)[1] == SSE
    assert await rig.gateway.exit_code() == 0


async def held(rig: Rig) -> bool:
    return await rig.gateway.admitted() == 1


async def test_g8_held_requests_are_told_when_the_drain_budget_ends(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_DRAIN_TIMEOUT="1s", **COLD)
    plain, stream = await open_client(rig.gateway.port), await open_client(rig.gateway.port)
    plain.request()
    stream.request(body=STREAM_BODY)
    await stream.head()
    rig.gateway.terminate()
    reply = await plain.reply()
    assert reply.status == 503
    assert reply.error["code"]
    body = await stream.stream_to_end()
    assert body.complete
    assert error_tail(split_heartbeats(body.data)[1])["code"]
    assert await rig.gateway.exit_code() == 0
    plain.leave()
    stream.leave()


async def test_g8_the_drain_budget_is_a_bound(start: Start) -> None:
    rig = await start(NOCTAYA_DRAIN_TIMEOUT="1s")

    async def endless(call: Call) -> None:
        call.send_event_stream_head()
        while call.wire.open:
            call.send_chunk(b"data: {}\n\n")
            await asyncio.sleep(0.05)

    rig.backend.script = endless
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY)
        await client.head()
        begun = time.monotonic()
        rig.gateway.terminate()
        body = await client.stream_to_end(within=15)
        assert await rig.gateway.exit_code() == 0
        assert 0.9 < time.monotonic() - begun < 6
        assert body.complete
        assert error_tail(body.data)["code"] == "draining"


async def test_g8_requests_on_kept_connections_are_told_to_close_while_draining(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="3s")
    async with connected(rig.gateway.port) as client:
        assert (await client.exchange()).status == 200
        rig.gateway.terminate()

        async def failing() -> bool:
            return await readyz(rig) == 503

        await eventually(failing, within=2)
        reply = await client.exchange()
        assert reply.status == 200
        assert (reply.head.one("connection") or b"").lower() == b"close"


async def test_g8_sigint_drains_as_well_and_a_start_that_fails_exits_1(start: Start) -> None:
    rig = await start()
    rig.gateway.process.send_signal(2)
    assert await rig.gateway.exit_code() == 0


async def test_g8_an_open_websocket_is_cut_at_the_end_of_the_budget(start: Start) -> None:
    rig = await start(NOCTAYA_DRAIN_TIMEOUT="1s")
    rig.backend.script = accept
    async with connected(rig.gateway.port) as client:
        client.request(b"GET", REALTIME, body=None, headers=UPGRADE)
        assert (await client.head()).status == 101
        begun = time.monotonic()
        rig.gateway.terminate()
        assert await client.wire.silent(0.5)
        await client.wire.ended()
        assert await rig.gateway.exit_code() == 0
        assert 0.9 < time.monotonic() - begun < 6


async def test_g8_a_body_being_sent_when_the_drain_begins_is_still_served(start: Start) -> None:
    rig = await start(NOCTAYA_LAME_DUCK="200ms", NOCTAYA_DRAIN_TIMEOUT="10s")
    async with connected(rig.gateway.port) as client:
        client.request(headers=[(b"Content-Length", b"10")], body=None)
        client.send(b"01234")
        await asyncio.sleep(0.2)
        rig.gateway.terminate()
        await asyncio.sleep(0.8)
        client.send(b"56789")
        assert (await client.reply()).status == 200
    assert await rig.gateway.exit_code() == 0
    assert rig.backend.calls[0].data == b"0123456789"


async def test_g8_an_interrupt_ends_the_waiting_and_a_repeated_sigterm_does_not(start: Start) -> None:
    """Ctrl-C is a person; a kubelet that restarts repeats its SIGTERM."""
    rig = await start(NOCTAYA_DRAIN_TIMEOUT="20s")
    rig.backend.script = hold
    async with connected(rig.gateway.port) as client:
        client.request()
        await rig.backend.call()
        rig.gateway.terminate()
        await asyncio.sleep(0.5)
        rig.gateway.terminate()
        await asyncio.sleep(0.5)
        assert rig.gateway.running
        rig.gateway.process.send_signal(signal.SIGINT)
        reply = await client.reply()
        assert (reply.status, reply.error["code"]) == (503, "draining")
        assert await rig.gateway.exit_code(within=5) == 0
        await client.wire.ended()
