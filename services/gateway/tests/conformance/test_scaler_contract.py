"""The co-located ExternalScaler, asked as KEDA asks it (contracts 4.1 over G and S rules)."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest

from .conftest import COLD, ONE_ENGINE, Lend
from .harness.backend import hold
from .harness.client import connected, open_client
from .harness.keda import METADATA, Keda
from .harness.process import eventually
from .harness.rig import Rig

pytestmark = ONE_ENGINE


async def held(rig: Rig, count: int) -> bool:
    return await rig.gateway.admitted() == count


async def test_scaler_pushes_active_when_a_cold_request_comes(lend: Lend, record_property: object) -> None:
    rig = await lend(healthy=False, **COLD)
    async with Keda(rig.gateway.scaler_port) as keda, connected(rig.gateway.port) as client:
        keda.watch()
        await keda.said(False)
        sent = time.monotonic()
        client.request()
        pushed = await keda.said(True)
        assert callable(record_property)
        record_property("seconds from request to push", round(pushed - sent, 4))
        assert pushed - sent < 2
        assert await keda.is_active()
        assert await keda.demand() == 1


async def test_scaler_repeats_true_every_two_seconds_and_never_false(lend: Lend) -> None:
    rig = await lend()
    rig.backend.script = hold
    async with Keda(rig.gateway.scaler_port) as keda:
        keda.watch()
        await keda.said(False)
        await asyncio.sleep(2.5)
        assert [value for _, value in keda.seen] == [False]
        async with connected(rig.gateway.port) as client:
            client.request()
            first = await keda.said(True)
            second = await keda.said(True, after=first + 0.01)
            assert 1.5 < second - first < 4
        ended = time.monotonic()
        await keda.said(False, after=ended)
        await asyncio.sleep(0.2)
        assert [value for at, value in keda.seen if at >= ended] == [False]


async def test_scaler_new_stream_gets_the_current_state_at_once(lend: Lend) -> None:
    rig = await lend()
    rig.backend.script = hold
    async with connected(rig.gateway.port) as client:
        client.request()
        await rig.backend.call()
        async with Keda(rig.gateway.scaler_port) as keda:
            keda.watch()
            await keda.said(True, within=5)
            assert keda.seen[0][1] is True


async def test_scaler_counts_queued_and_in_flight(lend: Lend) -> None:
    rig = await lend(healthy=False, **COLD)
    rig.backend.script = hold
    clients = [await open_client(rig.gateway.port) for _ in range(7)]
    for client in clients:
        client.request()
    async with Keda(rig.gateway.scaler_port) as keda:

        async def seven() -> bool:
            return await keda.demand() == 7

        await eventually(seven)
        rig.backend.set_healthy(True)
        await rig.backend.call(7)
        assert await keda.demand() == 7
        for client in clients[:4]:
            client.leave()

        async def three() -> bool:
            return await keda.demand() == 3

        await eventually(three)
        for client in clients[4:]:
            client.leave()

        async def none() -> bool:
            return await keda.demand() == 0 and not await keda.is_active()

        await eventually(none)


async def test_scaler_row_g12_lease_ends_after_ready_and_grace(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_READY_GRACE="1s", NOCTAYA_COLDSTART_MODE="reject")
    async with Keda(rig.gateway.scaler_port) as keda:
        assert (await rig.gateway.ask()).status == 503
        assert await keda.demand() == 1
        ready = time.monotonic()
        await rig.set_healthy(True)
        assert await keda.demand() == 1

        async def none() -> bool:
            return await keda.demand() == 0

        await eventually(none, within=8)
        assert time.monotonic() - ready >= 0.9


async def test_scaler_lease_is_renewed_by_further_cold_requests(lend: Lend) -> None:
    rig = await lend(healthy=False, NOCTAYA_ACTIVATION_TIMEOUT="1500ms", NOCTAYA_COLDSTART_MODE="reject")
    for _ in range(4):
        assert (await rig.gateway.ask()).error["code"] == "cold_start"
        await asyncio.sleep(0.6)
    assert await rig.gateway.demand() == 1


async def test_scaler_safe_methods_push_nothing(lend: Lend) -> None:
    rig = await lend(healthy=False, **COLD)
    async with Keda(rig.gateway.scaler_port) as keda:
        keda.watch()
        await keda.said(False)
        for target in (b"/v1/models", b"/", b"/favicon.ico"):
            await rig.gateway.ask(b"GET", target, body=None)
        await asyncio.sleep(0.3)
        assert [value for _, value in keda.seen] == [False]
        assert await keda.demand() == 0


async def test_scaler_metric_spec_is_one_pending_with_the_target(lend: Lend) -> None:
    rig = await lend()
    async with Keda(rig.gateway.scaler_port, {"targetValue": "2.5"}) as keda:
        (spec,) = (await keda.metric_spec()).metricSpecs
        assert spec.metricName == "pending"
        assert spec.targetSizeFloat == 2.5
        assert spec.targetSize > 0


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"targetValue": ""},
        {"targetValue": "zero"},
        {"targetValue": "NaN"},
        {"targetValue": "+Inf"},
        {"targetValue": "0"},
        {"targetValue": "-1"},
        {"targetValue": "10", "metricName": "other"},
    ],
    ids=str,
)
async def test_scaler_bad_metadata_is_invalid_argument_everywhere(
    lend: Lend, metadata: dict[str, str]
) -> None:
    rig = await lend(healthy=False)
    async with Keda(rig.gateway.scaler_port, metadata) as keda:
        for ask in (keda.is_active, keda.metric_spec, keda.metrics):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask()
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        keda.watch()
        assert await keda.stream_ended() is grpc.StatusCode.INVALID_ARGUMENT


async def test_scaler_only_the_pending_metric_can_be_asked_for(lend: Lend) -> None:
    rig = await lend(healthy=False)
    async with Keda(rig.gateway.scaler_port, {**METADATA, "metricName": ""}) as keda:
        assert await keda.demand() == 0
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await keda.metrics("s0-pending")
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_scaler_streams_are_gauged_and_end_with_their_client(lend: Lend) -> None:
    rig = await lend()

    async def streams(count: int) -> bool:
        return await rig.gateway.metric("noctaya_gateway_scaler_streams") == count

    async with Keda(rig.gateway.scaler_port) as first, Keda(rig.gateway.scaler_port) as second:
        first.watch()
        second.watch()
        await eventually(lambda: streams(2))
    await eventually(lambda: streams(0))


async def test_scaler_sees_short_requests_between_two_polls(lend: Lend) -> None:
    """A request shorter than any polling interval still counts as one activation event."""
    rig = await lend()
    before = await rig.gateway.metric("noctaya_gateway_activation_events_total")
    for _ in range(3):
        assert (await rig.gateway.ask()).status == 200
    assert await rig.gateway.metric("noctaya_gateway_activation_events_total") == before + 3
