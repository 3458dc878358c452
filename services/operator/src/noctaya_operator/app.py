"""The process: settings, connection, endpoints, leader election, and a stop in order.

The order of a stop: no new pass begins and running ones end, the lease is released so that a standby takes
over at once, Events that wait are written, watches and endpoints are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

from noctaya_api import names
from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.lifecycle import Stop, run
from noctaya_api.process.logs import configure_logging
from noctaya_api.process.metrics import new_registry
from noctaya_api.process.telemetry import TracingUnusable, configure_tracing, flush_tracing

from noctaya_operator import kinds
from noctaya_operator.endpoints import build_health, build_metrics
from noctaya_operator.kube.access import AccessError
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.leader import LeaderElector, LeadershipLost, LeaseTiming
from noctaya_operator.kube.metrics import KubeMetrics
from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.server_clock import ServerClock
from noctaya_operator.kube.transport import RequestDone
from noctaya_operator.operator import Operator
from noctaya_operator.settings import OFF, PROGRAM, OperatorSettings, load_settings, pod_namespace

log = logging.getLogger(__name__)

FLUSH: Final = 2.0
"""Seconds that Events may take at the end."""
DRAIN: Final = 1.0
"""Seconds for scrapes in progress at the end."""


async def serve(
    settings: OperatorSettings, stop: Stop, *, on_started: Callable[[Sequence[int]], None] | None = None
) -> None:
    """Run one operator until the stop.

    `on_started` is called with the ports of the endpoints, health first, once they are served.

    Raises:
        AccessError: there is no usable configuration of an API server.
        LeadershipLost: another leads now, or nobody can tell; the process has to end.
        TracingUnusable: a variable of traces can't be used.
        OSError: a port can't be bound.
    """
    registry = new_registry()
    namespace = pod_namespace()
    tracing = configure_tracing(PROGRAM, attributes={"k8s.namespace.name": namespace} if namespace else {})
    metrics = KubeMetrics(registry)
    clock = ServerClock()

    def observe(done: RequestDone) -> None:
        metrics.request_done(done)
        clock.heard(done)

    client = await KubeClient.connect(
        settings.kubeconfig or None,
        context=settings.context or None,
        resources=kinds.ALL,
        user_agent=f"{PROGRAM}/{version(PROGRAM)}",
        observe=observe,
    )
    operator = Operator(
        client,
        defaults=settings.defaults(),
        registry=registry,
        namespaces=settings.namespaces or None,
        workers=settings.workers,
        now=clock.now,
        kube_metrics=metrics,
        tracing=tracing,
    )
    elector = _elector(settings, client, operator, metrics, now=clock.now)
    servers = [
        HttpServer(app, listen=address)
        for app, address in (
            (
                build_health(lambda: [str(kind) for kind in operator.caches.unsynced]),
                settings.health_probe_bind_address,
            ),
            (build_metrics(registry), settings.metrics_bind_address),
        )
        if address != OFF
    ]
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(client.close)
        if tracing is not None:
            # It waits for the collector, though not for long, in a thread of its own.
            closing.push_async_callback(asyncio.to_thread, flush_tracing, tracing)
        for server in servers:
            await server.start()
            closing.push_async_callback(server.drain, DRAIN)
        log.info(
            "started",
            extra={
                "version": version(PROGRAM),
                "server": client.server,
                "ports": [server.port for server in servers],
                "identity": operator.identity,
            },
        )
        if on_started is not None:
            on_started([server.port for server in servers])
        work = operator.work() if elector is None else elector.run(operator.work)
        await _until(stop, operator.follow(), work)
        await _flush(operator)
    log.info("stopped")


async def _until(stop: Stop, follow: Coroutine[Any, Any, None], work: Coroutine[Any, Any, None]) -> None:
    """Run both until the stop or until one of them ends; end the work before what it reads from."""
    following = asyncio.create_task(follow, name="follow")
    working = asyncio.create_task(work, name="work")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({following, working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        log.info("stopping")
        failure: BaseException | None = None
        for task in (working, following, stopping):
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                continue
            except BaseException as error:  # noqa: BLE001 - raised below, once everything has ended
                failure = failure or error
    if failure is not None:
        raise failure


async def _flush(operator: Operator) -> None:
    try:
        async with asyncio.timeout(FLUSH):
            await operator.recorder.flush()
    except TimeoutError:
        log.warning("some events were not written in time")


def _elector(
    settings: OperatorSettings,
    client: KubeClient,
    operator: Operator,
    metrics: KubeMetrics,
    *,
    now: Callable[[], datetime],
) -> LeaderElector | None:
    if not settings.leader_elect:
        return None
    lease = Key(settings.lease_namespace(), names.LEADER_LEASE)
    metrics.leading(lease.name, leading=False)
    return LeaderElector(
        client,
        lease,
        operator.identity,
        timing=LeaseTiming(
            duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry=settings.retry_period,
        ),
        now=now,
        on_change=lambda leading: metrics.leading(lease.name, leading=leading),
    )


async def _main(settings: OperatorSettings) -> None:
    stop = Stop()
    stop.install()
    await serve(settings, stop)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `noctaya-operator`."""
    settings = load_settings(sys.argv[1:] if arguments is None else arguments)
    configure_logging(service=PROGRAM, level=settings.log_level)
    try:
        run(_main(settings))
    except (AccessError, LeadershipLost, TracingUnusable, OSError) as error:
        log.error("can't go on: %s", error)  # noqa: TRY400  a clear message, not a stack
        sys.exit(1)
