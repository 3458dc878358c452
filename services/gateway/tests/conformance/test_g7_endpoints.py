"""G7: endpoint-aware upstream: balancing, leaving addresses, discovery, paced release."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from .conftest import Backends, Start
from .harness.backend import Call, FakeBackend, hold
from .harness.client import Client, connected, open_client
from .harness.process import eventually
from .harness.rig import Rig


async def two_backends(
    start: Start, backends: Backends, *, healthy: bool = True, **env: str
) -> tuple[Rig, FakeBackend]:
    """A rig whose gateway knows its own backend and one more."""
    first, second = backends(), backends(healthy=healthy)
    await first.start()
    await second.start()
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL="http://tiny-backend.ns.svc:8000",
        NOCTAYA_BACKEND_ENDPOINTS=f"{first.endpoint}, {second.endpoint}",
        **env,
    )
    await rig.backend.stop()
    rig.backend = first
    first.set_healthy(healthy)
    if healthy:
        await eventually(lambda: ready_endpoints(rig, 2))
    return rig, second


async def ready_endpoints(rig: Rig, count: int) -> bool:
    return bool((await rig.gateway.get_json("/readyz"))["ready_endpoints"] == count)


async def opened(rig: Rig, count: int) -> list[Client]:
    clients = [await open_client(rig.gateway.port) for _ in range(count)]
    for client in clients:
        client.request()
        await asyncio.sleep(0.02)
    return clients


async def test_g7_requests_spread_by_least_in_flight(start: Start, backends: Backends) -> None:
    rig, second = await two_backends(start, backends)
    rig.backend.script = second.script = hold
    clients = await opened(rig, 10)
    await rig.backend.call(5)
    await second.call(5)
    for client in clients:
        client.leave()


async def test_g7_a_busy_endpoint_gets_no_more_until_the_other_is_as_busy(
    start: Start, backends: Backends
) -> None:
    rig, second = await two_backends(start, backends)
    rig.backend.script = hold
    second.script = answer_and_hold_none
    clients = await opened(rig, 6)
    await asyncio.sleep(0.1)
    assert len(rig.backend.calls) == 1
    assert len(second.calls) == 5
    for client in clients:
        client.leave()


async def answer_and_hold_none(call: Call) -> None:
    call.reply()


async def test_g7_only_ready_endpoints_are_used_and_a_new_one_joins(start: Start, backends: Backends) -> None:
    rig, second = await two_backends(start, backends)
    second.set_healthy(False)
    await eventually(lambda: ready_endpoints(rig, 1))
    for _ in range(6):
        assert (await rig.gateway.ask()).status == 200
    assert second.calls == []
    second.set_healthy(True)
    await eventually(lambda: ready_endpoints(rig, 2))
    for _ in range(6):
        assert (await rig.gateway.ask()).status == 200
    assert len(second.calls) >= 2


async def test_g7_an_endpoint_that_left_gets_nothing_but_its_streams_go_on(
    start: Start, backends: Backends
) -> None:
    rig, second = await two_backends(start, backends)
    rig.backend.script = second.script = hold
    clients = await opened(rig, 2)
    call = await second.call()
    await rig.backend.call()
    second.set_healthy(False)
    await eventually(lambda: ready_endpoints(rig, 1))
    rig.backend.script = answer_and_hold_none
    for _ in range(6):
        assert (await rig.gateway.ask()).status == 200
    assert len(second.calls) == 1
    call.reply(b"late")
    replies = await asyncio.gather(*(first_reply(client) for client in clients), return_exceptions=True)
    assert b"late" in replies
    for client in clients:
        client.leave()


async def first_reply(client: Client) -> bytes:
    return (await client.reply(within=2)).data


async def test_g7_a_killed_endpoint_costs_no_request_that_can_go_elsewhere(
    start: Start, backends: Backends
) -> None:
    """Refused before the prober has noticed: nothing was sent, so another address may be used."""
    rig, second = await two_backends(start, backends, NOCTAYA_PROBE_INTERVAL="30s", NOCTAYA_PROBE_FALL="10")
    for _ in range(4):
        assert (await rig.gateway.ask()).status == 200
    await second.stop()
    statuses = [(await rig.gateway.ask()).status for _ in range(10)]
    assert statuses == [200] * 10


async def test_g7_dns_of_a_headless_service_is_resolved(start: Start, backends: Backends) -> None:
    backend = backends()
    await backend.start()
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL="http://tiny-backend.ns.svc:8000",
        NOCTAYA_BACKEND_ENDPOINTS=f"dns://localhost:{backend.port}",
    )
    await eventually(rig.gateway.backend_ready)
    assert (await rig.gateway.ask()).status == 200
    assert len(backend.calls) == 1


async def test_g7_addresses_that_come_and_leave_are_followed(
    start: Start, backends: Backends, tmp_path: Path
) -> None:
    """By a file of addresses, which is what discovery by DNS ends in."""
    first, second = backends(), backends()
    await first.start()
    await second.start()
    addresses = tmp_path / "endpoints"
    addresses.write_text(f"{first.endpoint}\n{second.endpoint}\n")
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL="http://tiny-backend.ns.svc:8000",
        NOCTAYA_BACKEND_ENDPOINTS=f"file://{addresses}",
    )
    await eventually(lambda: ready_endpoints(rig, 2))
    first.script = second.script = hold
    clients = await opened(rig, 2)
    leaving = await second.call()
    await first.call()
    first.script = second.script = answer_and_hold_none
    replacement = tmp_path / "next"
    replacement.write_text(f"{first.endpoint}\n")
    replacement.replace(addresses)
    await eventually(lambda: ready_endpoints(rig, 1))
    for _ in range(6):
        assert (await rig.gateway.ask()).status == 200
    assert len(second.calls) == 1
    leaving.reply(b"late")
    leaving.finish()
    assert b"late" in await asyncio.gather(
        *(first_reply(client) for client in clients), return_exceptions=True
    )
    await leaving.wire.ended(within=5)
    for client in clients:
        client.leave()
    replacement.write_text("")
    replacement.replace(addresses)
    await eventually(lambda: ready_endpoints(rig, 0))
    assert (await rig.gateway.ask(b"GET", b"/", body=None)).status == 503


async def test_g7_a_name_that_does_not_resolve_is_cold_not_fatal(start: Start) -> None:
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL="http://tiny-backend.ns.svc:8000",
        NOCTAYA_BACKEND_ENDPOINTS="dns://no-such-host.invalid:8000",
        NOCTAYA_ACTIVATION_TIMEOUT="1s",
    )
    assert not await rig.gateway.backend_ready()
    assert (await rig.gateway.ask()).status == 503


@pytest.mark.parametrize("rate", [20])
async def test_g7_a_queue_is_released_no_faster_than_the_per_endpoint_rate(start: Start, rate: int) -> None:
    rig = await start(healthy=False, NOCTAYA_RELEASE_RATE=str(rate), NOCTAYA_ACTIVATION_TIMEOUT="60s")
    clients = []
    for number in range(12):
        client = await open_client(rig.gateway.port)
        client.request(body=b"%d" % number)
        clients.append(client)
        await eventually(partial(admitted, rig, number + 1))
    rig.backend.set_healthy(True)
    await rig.backend.call(12)
    at = [call.at for call in rig.backend.calls]
    burst = rate // 10
    assert at[-1] - at[0] >= (12 - burst) / rate * 0.8
    assert at[-1] - at[0] < 5
    assert [call.data for call in rig.backend.calls] == [b"%d" % number for number in range(12)]
    for client in clients:
        assert (await client.reply()).status == 200
        client.leave()


async def admitted(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def test_g7_newcomers_do_not_overtake_the_queue(start: Start) -> None:
    rig = await start(healthy=False, NOCTAYA_RELEASE_RATE="20", NOCTAYA_ACTIVATION_TIMEOUT="60s")
    clients = [await open_client(rig.gateway.port) for _ in range(8)]
    for client in clients:
        client.request(body=b"held")
    await eventually(lambda: admitted(rig, 8))
    rig.backend.set_healthy(True)
    await rig.backend.call()
    async with connected(rig.gateway.port) as late:
        assert (await late.exchange(body=b"late")).status == 200
    order = [call.data for call in rig.backend.calls]
    assert order[:8].count(b"late") == 0, order
    for client in clients:
        assert (await client.reply()).status == 200
        client.leave()


async def test_g7_a_queue_is_released_over_all_ready_endpoints(start: Start, backends: Backends) -> None:
    rig, second = await two_backends(start, backends, healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="60s")
    rig.backend.script = second.script = hold
    clients = [await open_client(rig.gateway.port) for _ in range(8)]
    for client in clients:
        client.request()
    await eventually(lambda: admitted(rig, 8))
    rig.backend.set_healthy(True)
    await rig.backend.call(4)
    second.set_healthy(True)
    await eventually(lambda: ready_endpoints(rig, 2))
    more = await opened(rig, 4)
    await second.call(4)
    for client in [*clients, *more]:
        client.leave()
