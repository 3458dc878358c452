"""A typed client of an ExternalScaler, as KEDA is one: used by the embedded mode and by tests."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """One metric of GetMetricSpec."""

    name: str
    target: float
    """The float field when it is set, else the integer one, as KEDA reads them."""


@dataclass(frozen=True, slots=True)
class ClientTls:
    """PEM files of a client: the CA of the server, and the client's own certificate chain and key."""

    ca: Path
    cert: Path
    key: Path


class ExternalScalerClient:
    """One connection to one scaler for one scaled object; use it as an async context manager.

    Every call raises `grpc.aio.AioRpcError` when it fails.

    Args:
        target: `host:port`.
        metadata: the trigger's metadata, e.g. `{"metricName": "pending", "targetValue": "5"}`.
        name, namespace: of the scaled object.
        tls: mutual TLS, or None for plaintext.
        timeout: seconds a unary call may take.
        options: further gRPC channel arguments.
    """

    def __init__(
        self,
        target: str,
        *,
        metadata: Mapping[str, str],
        name: str = "",
        namespace: str = "",
        tls: ClientTls | None = None,
        timeout: float = 5.0,
        options: tuple[tuple[str, Any], ...] = (),
    ) -> None:
        self._ref = pb.ScaledObjectRef(name=name, namespace=namespace, scalerMetadata=dict(metadata))
        self._timeout = timeout
        arguments = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
            *options,
        ]
        if tls is None:
            self._channel = grpc.aio.insecure_channel(target, options=arguments)
        else:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=tls.ca.read_bytes(),
                private_key=tls.key.read_bytes(),
                certificate_chain=tls.cert.read_bytes(),
            )
            self._channel = grpc.aio.secure_channel(target, credentials, options=arguments)
        self._stub: Any = ExternalScalerStub(self._channel)  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; open streams end."""
        await self._channel.close(None)

    async def is_active(self) -> bool:
        """Whether the object should run."""
        response: pb.IsActiveResponse = await self._stub.IsActive(self._ref, timeout=self._timeout)
        return response.result

    async def stream_is_active(self) -> AsyncGenerator[bool, None]:
        """Pushed states until the server ends the stream with status OK; leaving the loop cancels the call.

        Close the iterator (`contextlib.aclosing`) to cancel it at a known moment.
        """
        call = self._stub.StreamIsActive(self._ref, wait_for_ready=True)
        try:
            async for response in call:
                yield response.result
        finally:
            call.cancel()

    async def metric_spec(self) -> list[MetricTarget]:
        """The metrics to ask for."""
        response: pb.GetMetricSpecResponse = await self._stub.GetMetricSpec(self._ref, timeout=self._timeout)
        return [
            MetricTarget(name=spec.metricName, target=spec.targetSizeFloat or float(spec.targetSize))
            for spec in response.metricSpecs
        ]

    async def metric(self, name: str = "pending") -> float:
        """The current value of one metric; 0.0 when the scaler returns none of that name."""
        request = pb.GetMetricsRequest(scaledObjectRef=self._ref, metricName=name)
        response: pb.GetMetricsResponse = await self._stub.GetMetrics(request, timeout=self._timeout)
        for value in response.metricValues:
            if value.metricName == name:
                return value.metricValueFloat or float(value.metricValue)
        return 0.0
