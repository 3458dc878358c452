"""KEDA's side of the ExternalScaler contract: literal method paths over a plain channel."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from noctaya_api.externalscaler import externalscaler_pb2 as pb

from .wire import SOON

SERVICE = "/externalscaler.ExternalScaler/"
METADATA = {"targetValue": "10", "metricName": "pending"}


class Keda:
    """A channel to one scaler, and what its StreamIsActive said when."""

    def __init__(
        self,
        port: int,
        metadata: dict[str, str] | None = None,
        *,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self.ref = pb.ScaledObjectRef(
            name="svc", namespace="ns", scalerMetadata=METADATA if metadata is None else metadata
        )
        self.seen: list[tuple[float, bool]] = []
        self.ended_with: grpc.StatusCode | None = None
        target = f"localhost:{port}"
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = (
            grpc.aio.insecure_channel(target, options=options)
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, options=options)
        )
        self._watch: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._channel.close(grace=None)

    async def is_active(self) -> bool:
        reply = await self._unary("IsActive", pb.ScaledObjectRef, pb.IsActiveResponse, self.ref)
        return bool(reply.result)

    async def metric_spec(self) -> Any:
        return await self._unary("GetMetricSpec", pb.ScaledObjectRef, pb.GetMetricSpecResponse, self.ref)

    async def metrics(self, name: str = "pending") -> Any:
        request = pb.GetMetricsRequest(scaledObjectRef=self.ref, metricName=name)
        return await self._unary("GetMetrics", pb.GetMetricsRequest, pb.GetMetricsResponse, request)

    async def demand(self) -> float:
        """The metric's value, the same in both fields."""
        (value,) = (await self.metrics()).metricValues
        assert value.metricName == "pending"
        assert value.metricValueFloat == value.metricValue
        return float(value.metricValueFloat)

    def watch(self) -> None:
        """Open StreamIsActive and keep what it says."""
        self._watch = asyncio.get_running_loop().create_task(self._follow())

    async def said(self, value: bool, *, after: float = 0.0, within: float = SOON) -> float:
        """The moment of the first `value` after a moment."""
        async with asyncio.timeout(within):
            while True:
                for at, seen in self.seen:
                    if seen is value and at >= after:
                        return at
                self._news.clear()
                await self._news.wait()

    async def stream_ended(self, within: float = SOON) -> grpc.StatusCode:
        assert self._watch is not None
        async with asyncio.timeout(within):
            await asyncio.wait([self._watch])
        assert self.ended_with is not None
        return self.ended_with

    async def _follow(self) -> None:
        call = self._channel.unary_stream(
            SERVICE + "StreamIsActive",
            request_serializer=pb.ScaledObjectRef.SerializeToString,
            response_deserializer=pb.IsActiveResponse.FromString,
        )(self.ref)
        try:
            async for reply in call:
                self.seen.append((time.monotonic(), bool(reply.result)))
                self._news.set()
        except grpc.aio.AioRpcError as error:
            self.ended_with = error.code()
        else:
            self.ended_with = await call.code()
        finally:
            self._news.set()

    async def _unary(self, method: str, request: Any, response: Any, message: Any) -> Any:
        call = self._channel.unary_unary(
            SERVICE + method,
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        return await call(message, timeout=SOON, wait_for_ready=True)
