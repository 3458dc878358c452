"""The unary calls, over real gRPC."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from noctaya_api.demand.signal import DemandSignal, DemandState
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.client import ExternalScalerClient, MetricTarget
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from noctaya_api.externalscaler.server import ScalerServer

GOOD = {"targetValue": "5"}


@pytest.fixture
async def stub(server: ScalerServer) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield ExternalScalerStub(channel)  # type: ignore[no-untyped-call]


async def test_a8_the_unary_contract(source: DemandSignal, client: ExternalScalerClient) -> None:
    assert await client.metric_spec() == [MetricTarget("pending", 5.0)]
    assert await client.is_active() is False
    assert await client.metric() == 0.0
    source.publish(7)
    assert await client.is_active() is True
    assert await client.metric() == 7.0


async def test_s3_integer_and_float_fields_are_both_filled(source: DemandSignal, stub: Any) -> None:
    source.publish(12)
    ref = pb.ScaledObjectRef(scalerMetadata={"targetValue": "2.5"})
    spec = await stub.GetMetricSpec(ref)
    assert spec == pb.GetMetricSpecResponse(
        metricSpecs=[pb.MetricSpec(metricName="pending", targetSize=2, targetSizeFloat=2.5)]
    )
    metrics = await stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref, metricName="pending"))
    assert metrics == pb.GetMetricsResponse(
        metricValues=[pb.MetricValue(metricName="pending", metricValue=12, metricValueFloat=12.0)]
    )


async def test_demand_beyond_int64_saturates_the_integer_field(source: DemandSignal, stub: Any) -> None:
    source.publish(2**64)
    ref = pb.ScaledObjectRef(scalerMetadata=GOOD)
    metrics = await stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref, metricName="pending"))
    assert metrics.metricValues[0].metricValue == 2**63 - 1


BAD_METADATA: list[dict[str, str]] = [
    {},
    {"metricName": "pending"},
    {"metricName": "queue", "targetValue": "5"},
    *({"targetValue": text} for text in ("zero", "NaN", "+Inf", "0", "-1")),
]


@pytest.mark.parametrize("metadata", BAD_METADATA)
async def test_a10_bad_metadata_is_invalid_argument_for_every_call(
    metadata: dict[str, str], stub: Any
) -> None:
    ref = pb.ScaledObjectRef(name="x", namespace="y", scalerMetadata=metadata)

    async def first(call: Any) -> Any:
        return await call.read()

    for outcome in (
        stub.IsActive(ref),
        first(stub.StreamIsActive(ref)),
        stub.GetMetricSpec(ref),
        stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref, metricName="pending")),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await outcome
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("name", ["", "s0-pending", "Pending"])
async def test_a10_another_metric_is_invalid_argument(name: str, stub: Any) -> None:
    request = pb.GetMetricsRequest(scaledObjectRef=pb.ScaledObjectRef(scalerMetadata=GOOD), metricName=name)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetMetrics(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_request_without_a_scaled_object_is_invalid_argument(stub: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetMetrics(pb.GetMetricsRequest(metricName="pending"))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_s1_unknown_demand_is_unavailable_and_the_spec_is_answered(
    source: Any, client: ExternalScalerClient
) -> None:
    source.known = False
    for call in (client.is_active, client.metric):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await client.metric_spec() == [MetricTarget("pending", 5.0)]


async def test_s4_active_and_metric_of_one_moment_agree(
    source: DemandSignal, client: ExternalScalerClient
) -> None:
    for demand in (0, 3, 0, 1):
        source.publish(demand)
        assert await client.is_active() is (await client.metric() > 0)


async def test_whoever_is_told_is_reported_with_the_state() -> None:
    told: list[DemandState] = []
    source = DemandSignal(4)
    server = ScalerServer(source, listen="127.0.0.1:0", on_told=told.append)
    await server.start()
    async with ExternalScalerClient(f"127.0.0.1:{server.port}", metadata=GOOD, timeout=30) as client:
        await client.is_active()
        await client.metric()
        await client.metric_spec()
    assert [state.demand for state in told] == [4, 4]
    await server.stop(5)
