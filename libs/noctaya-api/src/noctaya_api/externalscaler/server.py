"""The gRPC server that KEDA dials: ExternalScaler and health, plaintext or mutual TLS, in the same loop."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from noctaya_api.demand.signal import DemandState
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.externalscaler_pb2_grpc import add_ExternalScalerServicer_to_server
from noctaya_api.externalscaler.servicer import DemandSource, ExternalScalerServicer
from noctaya_api.externalscaler.tls import TlsFiles, TlsReloader, TlsUnusable
from noctaya_api.process.listen import parse_listen

__all__ = ["ScalerServer", "TlsFiles", "TlsUnusable"]

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["ExternalScaler"].full_name
_MAX_MESSAGE_BYTES = 64 * 1024
_MAX_CALLS = 256
_MAX_CALLS_PER_CONNECTION = 64
_UNARY_GRACE = 1.0

logger = logging.getLogger(__name__)


class ScalerServer:
    """ExternalScaler over one demand source.

    Args:
        source: the demand.
        listen: `host:port` or `:port`; port 0 lets the system choose.
        tls: mutual TLS with these files, or None for plaintext.
        on_streams: called with the number of open StreamIsActive calls whenever it changes.
        on_told: called with the state each time KEDA was given it.
        on_tls_reload: called with True or False after changed TLS files were taken up or refused, off the
            loop.
        repeat: seconds between repeats of `true` on a stream.
        keepalive: seconds of silence after which a connection is pinged; one that does not answer within the
            same time is closed and its streams end. Clients may ping as often as they like.
    """

    def __init__(
        self,
        source: DemandSource,
        *,
        listen: str,
        tls: TlsFiles | None = None,
        on_streams: Callable[[int], None] = lambda count: None,
        on_told: Callable[[DemandState], None] = lambda state: None,
        on_tls_reload: Callable[[bool], None] = lambda taken: None,
        repeat: float = 2.0,
        keepalive: float = 10.0,
    ) -> None:
        self._host, self._wanted_port = parse_listen(listen)
        self._reloader = TlsReloader(tls, on_reload=on_tls_reload) if tls is not None else None
        self._keepalive = keepalive
        self._on_streams = on_streams
        self._no_streams = asyncio.Event()
        self._no_streams.set()
        self._servicer = ExternalScalerServicer(
            source,
            on_stream_open=self._streams_changed,
            on_stream_closed=self._streams_changed,
            on_told=on_told,
            repeat=repeat,
        )
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self._server: grpc.aio.Server | None = None
        self._port = 0

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            OSError: the address can't be bound.
            TlsUnusable: the TLS files can't be used.
        """
        credentials = self._reloader.credentials() if self._reloader is not None else None
        server = grpc.aio.server(options=self._options(), maximum_concurrent_rpcs=_MAX_CALLS)
        add_ExternalScalerServicer_to_server(self._servicer, server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        address = self._address()
        try:
            if credentials is None:
                self._port = server.add_insecure_port(address)
            else:
                self._port = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            await server.stop(None)
            raise OSError(f"gRPC can't listen on {address}: {error}") from error
        await server.start()
        self._server = server
        for name in ("", SERVICE_NAME):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    @property
    def port(self) -> int:
        """The port in use; 0 before `start`."""
        return self._port

    @property
    def streams(self) -> int:
        """Open StreamIsActive calls."""
        return self._servicer.streams

    def certificate_expires(self) -> datetime | None:
        """End of validity of the certificate in the TLS files; None in plaintext or if it can't be read."""
        return self._reloader.expires() if self._reloader is not None else None

    async def stop(self, grace: float) -> None:
        """End every StreamIsActive with status OK, then the server; takes at most about `grace` seconds.

        Without a stream, or with clients that read, it takes milliseconds: KEDA's streams never end by
        themselves, so waiting for them would only spend the grace.
        """
        if self._server is None:
            return
        server, self._server = self._server, None
        await self._health.enter_graceful_shutdown()
        self._servicer.end_streams()
        try:
            async with asyncio.timeout(grace):
                await self._no_streams.wait()
        except TimeoutError:
            logger.warning("streams did not end in time and are cut", extra={"streams": self.streams})
        await server.stop(min(grace, _UNARY_GRACE))

    def _streams_changed(self) -> None:
        count = self._servicer.streams
        if count:
            self._no_streams.clear()
        else:
            self._no_streams.set()
        self._on_streams(count)

    def _address(self) -> str:
        host = self._host or "::"
        return f"[{host}]:{self._wanted_port}" if ":" in host else f"{host}:{self._wanted_port}"

    def _options(self) -> list[tuple[str, int]]:
        milliseconds = int(self._keepalive * 1000)
        return [
            # Without this a second process would bind the same port and take half of the calls.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", milliseconds),
            ("grpc.keepalive_timeout_ms", milliseconds),
            # Without this an unanswered ping is waited for a minute, whatever the keepalive timeout says.
            ("grpc.http2.ping_timeout_ms", milliseconds),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
            ("grpc.http2.max_ping_strikes", 0),
            ("grpc.max_concurrent_streams", _MAX_CALLS_PER_CONNECTION),
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ]
