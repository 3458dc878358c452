"""The process: settings, wiring, start, and a stop in order."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from noctaya_api.demand.ledger import DemandLedger
from noctaya_api.demand.report import MIN_TOKEN_BYTES
from noctaya_api.externalscaler.server import ScalerServer, TlsUnusable
from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.lifecycle import Stop, run
from noctaya_api.process.logs import configure_logging
from noctaya_api.process.metrics import new_registry
from noctaya_api.process.settings import load_settings
from noctaya_api.process.telemetry import TracingUnusable, configure_tracing, flush_tracing
from noctaya_api.process.token_file import TokenFile

from noctaya_aggregate_scaler.activations import Activations
from noctaya_aggregate_scaler.aggregate import Aggregate
from noctaya_aggregate_scaler.api import ReportsFirst, build_api
from noctaya_aggregate_scaler.auth import ReportAuthenticator, TokenUnavailable
from noctaya_aggregate_scaler.metrics import ScalerMetrics, register
from noctaya_aggregate_scaler.reports import ReportHandler
from noctaya_aggregate_scaler.settings import ScalerSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICE = "noctaya-aggregate-scaler"

# A gateway reports every 2 s; closing its idle connection between two reports would race with the next one.
_KEEP_ALIVE = 15

logger = logging.getLogger(__name__)


class AggregateScaler:
    """One scaler: the aggregate between an HTTP server for reports and a gRPC server for KEDA.

    Args:
        settings: the checked environment.
        clock: monotonic seconds.
        tracing: where spans of activations go; None for nowhere.
    """

    def __init__(
        self,
        settings: ScalerSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        tracing: "TracerProvider | None" = None,
    ) -> None:
        self._drain_timeout = settings.drain_timeout
        self._serving = False
        self._authenticator = ReportAuthenticator(
            TokenFile(settings.demand_auth_token_file, min_length=MIN_TOKEN_BYTES), clock=clock
        )
        ledger = DemandLedger(
            max_members=settings.max_gateway_members,
            max_demand=settings.max_gateway_demand,
            expected_members=settings.expected_gateway_members,
            clock=clock,
        )
        self.aggregate = Aggregate(ledger, clock=clock)
        metrics = ScalerMetrics()
        activations = Activations(tracing)
        registry = new_registry()
        register(registry, metrics, self.aggregate)
        self.grpc = ScalerServer(
            self.aggregate,
            listen=settings.scaler_listen_addr,
            tls=settings.tls_files(),
            on_streams=metrics.stream_count,
            on_told=activations.told,
            on_tls_reload=metrics.tls_reload,
        )
        metrics.certificate_expires = self.grpc.certificate_expires
        self.reports = ReportHandler(self.aggregate, self._authenticator, metrics, activations=activations)
        api = build_api(
            version=version(SERVICE),
            reports=self.reports,
            registry=registry,
            readiness=self._readiness,
        )
        self._http = HttpServer(
            ReportsFirst(api, self.reports),
            listen=settings.aggregator_listen_addr,
            timeout_keep_alive=_KEEP_ALIVE,
        )

    @property
    def streams(self) -> int:
        """Open StreamIsActive calls."""
        return self.grpc.streams

    @property
    def http_port(self) -> int:
        """The report port in use."""
        return self._http.port

    @property
    def grpc_port(self) -> int:
        """The ExternalScaler port in use."""
        return self.grpc.port

    async def start(self) -> None:
        """Serve both ports.

        Raises:
            TokenUnavailable, TlsUnusable: a file can't be used.
            OSError: a port can't be bound.
        """
        self._authenticator.check()
        await self.grpc.start()
        try:
            await self._http.start()
        except OSError:
            await self.grpc.stop(0)
            raise
        self._serving = True
        logger.info("serving", extra={"http_port": self.http_port, "grpc_port": self.grpc_port})

    async def run(self, stop: Stop) -> None:
        """Serve until the stop, then stop in order. Errors as `start`."""
        await self.start()
        sweeping = asyncio.create_task(self.aggregate.sweep(), name="sweep")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({sweeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if sweeping.done():
                sweeping.result()
        finally:
            for task in (sweeping, stopping):
                task.cancel()
            await self.stop()

    async def stop(self) -> None:
        """Fail readiness, end KEDA's streams with OK, let reports in progress end, close everything."""
        self._serving = False
        logger.info("stopping")
        await self.grpc.stop(self._drain_timeout)
        cut = await self._http.drain(self._drain_timeout)
        logger.info("stopped", extra={"connections_cut": cut})

    def _readiness(self) -> str | None:
        if not self._serving:
            return "not serving"
        try:
            self._authenticator.check()
        except TokenUnavailable as error:
            return str(error)
        return None


async def serve(settings: ScalerSettings) -> None:
    """Run one scaler until SIGTERM or SIGINT. Errors as `AggregateScaler.start` and `configure_tracing`."""
    stop = Stop()
    stop.install()
    provider = configure_tracing(SERVICE)
    try:
        await AggregateScaler(settings, tracing=provider).run(stop)
    finally:
        if provider is not None:
            await asyncio.to_thread(flush_tracing, provider)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `noctaya-aggregate-scaler`."""
    parser = argparse.ArgumentParser(prog=SERVICE, description="One view of demand over several gateways.")
    parser.add_argument("--version", action="version", version=f"{SERVICE} {version(SERVICE)}")
    parser.parse_args(argv)
    settings = load_settings(ScalerSettings)
    configure_logging(service=SERVICE, level=settings.log_level)
    try:
        run(serve(settings))
    except (TokenUnavailable, TlsUnusable, TracingUnusable, OSError) as error:
        logger.error("can't start: %s", error)  # noqa: TRY400  a clear message, not a stack
        sys.exit(1)
