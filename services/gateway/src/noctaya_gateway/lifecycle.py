"""A gateway process from start to exit: what starts in which order, and the ordered drain (behaviour G8).

Start: addresses and probes first, then the scaler's port, then the HTTP port, so that the first request
finds everything in place. Stop, on SIGTERM or SIGINT: `/readyz` fails while requests are still accepted
(lame duck, for load balancers to notice); the listeners close; requests in flight, held ones too, get
the drain budget and keep counting as demand; KEDA's streams end cleanly; the demand report is withdrawn
last. A further SIGINT, somebody at a terminal, ends the waiting at once; a further SIGTERM does not, since a
kubelet that restarts repeats it. Exit code 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.lifecycle import Stop
from noctaya_api.process.telemetry import TracingUnusable, configure_tracing

from noctaya_gateway.control import Control, build_control
from noctaya_gateway.data import build_data, build_server
from noctaya_gateway.datapath import DataPath
from noctaya_gateway.delivery import watch
from noctaya_gateway.errors import AuthenticationUnavailable, Draining
from noctaya_gateway.ops import operations
from noctaya_gateway.settings import GatewaySettings
from noctaya_gateway.tracing import Tracing

if TYPE_CHECKING:
    from noctaya_api.externalscaler.server import ScalerServer

log = logging.getLogger(__name__)

T = TypeVar("T")

GOODBYE = 0.5
"""Seconds before the end of the drain budget at which held requests are told; nothing would become of them.
"""
FAREWELL = 0.5
"""Seconds beyond the drain budget for those to read it who were told at its end."""
SCALER_GRACE = 2.0
"""Seconds KEDA's streams have to end after they were told."""


async def serve(
    settings: GatewaySettings,
    *,
    stop: Stop | None = None,
    on_listening: Callable[[], None] = lambda: None,
) -> int:
    """Run until `stop` (SIGTERM or SIGINT when None); the exit code: 0, or 1 when it could not start."""
    try:
        provider = configure_tracing("noctaya-gateway")
    except TracingUnusable as error:
        log.error("the gateway can't start: %s", error)  # noqa: TRY400  the reason says it all
        return 1
    tracing = None if provider is None else Tracing(provider)
    control = build_control(settings, tracing=tracing)
    data = build_data(settings, control)
    server = build_server(settings, data, operations(control.gate, control.delivery))
    if stop is None:
        stop = Stop()
        stop.install()
    watcher = asyncio.create_task(watch(control.delivery), name="delivery-watch")
    try:
        await _start(control, server)
        on_listening()
        log.info("listening", extra={"listener": "http", "port": server.port})
        await stop.wait()
        await drain(settings, data, server)
    except OSError as error:
        log.error("the gateway can't start: %s", error)  # noqa: TRY400  the reason says it all
        return 1
    finally:
        watcher.cancel()
        await _close(control, tracing)
        await data.pool.close()
        if data.access is not None:
            await data.access.writer.close()
    log.info("stopped")
    return 0


async def drain(settings: GatewaySettings, data: DataPath, server: HttpServer) -> None:
    """Take leave of the clients: lame duck, then the drain budget; a SIGINT meanwhile shortens both.

    Who is held until near the budget's end is told, who is in flight at its end too, and what can't be told
    is cut. Time to read it counts from the telling on: were both its ends fixed before, a process that the
    machine kept waiting would tell and cut in one breath.
    """
    gate = data.gate
    gate.draining = True
    log.info(
        "stopping",
        extra={"lame_duck": settings.lame_duck, "in_flight": gate.demand.pending, "held": len(gate.line)},
    )
    hurry = Stop()
    hurry.install(signal.SIGINT)
    await _unless(hurry, asyncio.sleep(settings.lame_duck))
    server.close_listeners()
    budget = settings.drain_timeout
    if not await _unless(hurry, server.settle(max(0.0, budget - GOODBYE))):
        gate.line.fail_all(Draining)
        if not await _unless(hurry, server.settle(min(GOODBYE, budget))):
            data.part()
    if cut := await server.drain(FAREWELL):
        log.warning("connections were cut at the end of the drain", extra={"connections": cut})


async def _start(control: Control, server: HttpServer) -> None:
    with contextlib.suppress(AuthenticationUnavailable):  # every request will say so
        control.gate.auth.prime()
    control.discovery.start()
    if control.scaler is not None:
        await _start_scaler(control.scaler)
    if control.reporter is not None:
        control.reporter.start()
    await server.start()


async def _start_scaler(scaler: ScalerServer) -> None:
    from noctaya_api.externalscaler.server import TlsUnusable  # noqa: PLC0415  loaded only with a scaler

    try:
        await scaler.start()
    except TlsUnusable as error:
        raise OSError(f"scaler TLS: {error}") from error
    log.info("listening", extra={"listener": "scaler", "port": scaler.port})


async def _close(control: Control, tracing: Tracing | None) -> None:
    if control.scaler is not None:
        await control.scaler.stop(SCALER_GRACE)
    if control.reporter is not None and not await control.reporter.withdraw():
        log.warning("the demand report could not be withdrawn; it expires by itself")
    await control.discovery.close()
    await control.prober.close()
    control.gate.close()
    if tracing is not None:
        await asyncio.to_thread(tracing.close)


async def _unless(hurry: Stop, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None when `hurry` came first and `work` was called off."""
    task = asyncio.create_task(work)
    hurried = asyncio.create_task(hurry.wait())
    try:
        await asyncio.wait({task, hurried}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hurried.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task})
    return None
