"""G6: readiness belongs to the gateway, not to a client."""

from __future__ import annotations

import asyncio
import time

import pytest

from .conftest import ONE_ENGINE, Start
from .harness.backend import Call, hold
from .harness.client import STREAM_BODY, connected, open_client
from .harness.process import eventually
from .harness.rig import Rig

pytestmark = ONE_ENGINE


async def ready_for(rig: Rig, seconds: float) -> bool:
    """True when the gateway called the backend ready all that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not await rig.gateway.backend_ready():
            return False
        await asyncio.sleep(0.03)
    return True


async def test_g6_readiness_is_probed_without_any_client(start: Start) -> None:
    rig = await start(healthy=False)
    await rig.set_healthy(True)
    await rig.set_healthy(False)
    assert rig.backend.calls == []


async def test_g6_requests_cause_no_probes_when_warm(start: Start) -> None:
    rig = await start(NOCTAYA_PROBE_INTERVAL="30s")
    before = len(rig.backend.probes)
    for _ in range(30):
        assert (await rig.gateway.ask()).status == 200
    assert len(rig.backend.probes) <= before + 1


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        (b"200 OK", True),
        (b"204 No Content", True),
        (b"299 Odd", True),
        (b"302 Found", False),
        (b"404 Not Found", False),
        (b"500 Broken", False),
        (b"503 Loading", False),
    ],
)
async def test_g6_ready_is_200_to_299_on_the_runtimes_own_path(
    start: Start, status: bytes, ready: bool
) -> None:
    rig = await start(healthy=False, NOCTAYA_HEALTH_PATH="/v2/is-it-up?deep=1")
    rig.backend.health_path = b"/v2/is-it-up?deep=1"
    rig.backend.reset()
    rig.backend.set_health_status(status)

    async def probed() -> bool:
        return len(rig.backend.probes) >= 3

    await eventually(probed)
    assert await rig.gateway.backend_ready() is ready
    assert rig.backend.calls == []


async def test_g6_a_cancelled_client_never_makes_a_warm_service_cold(start: Start) -> None:
    rig = await start()
    rig.backend.script = hold
    for number in range(10):
        async with connected(rig.gateway.port) as client:
            client.request()
            await rig.backend.call(number + 1)
            client.leave(reset=number % 2 == 0)
    assert await ready_for(rig, 0.5)


async def test_g6_slow_and_failed_probes_below_the_threshold_change_nothing(start: Start) -> None:
    rig = await start(NOCTAYA_PROBE_FALL="3", NOCTAYA_PROBE_TIMEOUT="600ms")
    failures = {"left": 0}

    async def flaky(call: Call) -> None:
        failures["left"] = (failures["left"] + 1) % 3
        if failures["left"] == 1:
            await call.wire.ended(within=30)
        elif failures["left"] == 2:
            call.reply(b"", status=b"500 Once")
        else:
            call.reply(b"")

    rig.backend.health = flaky
    assert await ready_for(rig, 2.5)
    assert (await rig.gateway.ask()).status == 200


async def test_g6_consecutive_failures_at_the_threshold_make_it_cold(start: Start) -> None:
    rig = await start(NOCTAYA_PROBE_FALL="3")
    await rig.set_healthy(False)
    assert len(rig.backend.probes) >= 3
    assert (await rig.gateway.ask(b"GET", b"/", body=None)).status == 503


async def test_g6_rise_threshold_counts_consecutive_successes(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_PROBE_RISE="3")
    turn = {"n": 0}

    async def alternating(call: Call) -> None:
        turn["n"] += 1
        call.reply(b"", status=b"503 No" if turn["n"] % 3 == 0 else b"200 OK")

    rig.backend.health = alternating
    await asyncio.sleep(1)
    assert not await rig.gateway.backend_ready()
    rig.backend.health = None
    await rig.set_healthy(True)


@pytest.mark.parametrize("body", [b"{}", STREAM_BODY], ids=["plain", "stream"])
async def test_g6_first_byte_follows_readiness_within_100_ms(
    start: Start, record_property: object, body: bytes
) -> None:
    """The reach is 100 ms; a shared machine gets a second. The measured time is a property of the test."""
    rig = await start(healthy=False, NOCTAYA_PROBE_INTERVAL="20s", NOCTAYA_PROBE_FAST_INTERVAL="50ms")
    async with connected(rig.gateway.port) as client:
        client.request(body=body)
        await eventually(lambda: held(rig))
        await asyncio.sleep(0.3)
        rig.backend.set_healthy(True)
        ready = time.monotonic()
        await client.wire.wait_for(lambda: len(client.wire.buffer) > 0)
        took = time.monotonic() - ready
        assert (await client.reply()).status == 200
    assert callable(record_property)
    record_property("seconds from ready to first byte", round(took, 4))
    assert took < 1.0


async def held(rig: Rig) -> bool:
    return await rig.gateway.admitted() == 1


async def test_g6_probing_is_slow_at_rest_and_fast_while_an_activation_is_pending(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_PROBE_INTERVAL="2s", NOCTAYA_PROBE_FAST_INTERVAL="40ms")
    await asyncio.sleep(0.2)
    rig.backend.probes.clear()
    await asyncio.sleep(1)
    assert len(rig.backend.probes) <= 2
    async with connected(rig.gateway.port) as client:
        client.request()

        async def fast() -> bool:
            return len(rig.backend.probes) >= 10

        await eventually(fast, within=5)
        rig.backend.set_healthy(True)
        assert (await client.reply()).status == 200


async def test_g6_one_probe_serves_any_number_of_waiters(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_PROBE_INTERVAL="200ms", NOCTAYA_PROBE_FAST_INTERVAL="200ms")
    clients = [await open_client(rig.gateway.port) for _ in range(30)]
    for client in clients:
        client.request()
    await asyncio.sleep(0.3)
    rig.backend.probes.clear()
    await asyncio.sleep(1)
    assert len(rig.backend.probes) <= 8
    for client in clients:
        client.leave()


async def test_g6_a_backend_that_comes_and_goes_serves_whenever_it_is_there(start: Start) -> None:
    rig = await start(healthy=False)
    for _ in range(3):
        async with connected(rig.gateway.port) as client:
            client.request()
            await eventually(lambda: held(rig))
            await rig.set_healthy(True)
            assert (await client.reply()).status == 200
        await rig.set_healthy(False)
    assert await rig.gateway.metric("noctaya_gateway_activation_wait_seconds_count") == 3
