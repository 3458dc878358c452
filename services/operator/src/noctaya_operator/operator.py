"""One operator: caches that always follow the cluster, and two controllers that work while it leads.

Everything is wired here, by constructor, and nowhere else.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from noctaya_api import names
from prometheus_client import CollectorRegistry

from noctaya_operator import pruning
from noctaya_operator.activation_poller import ActivationPoller
from noctaya_operator.activation_trace import ActivationTracer
from noctaya_operator.caches import WRITTEN, Caches
from noctaya_operator.defaults import Defaults
from noctaya_operator.ensure import Ensurer
from noctaya_operator.gateway_notices import GatewayNotices
from noctaya_operator.job_trouble import JobTroubles
from noctaya_operator.kinds import INFERENCE_RUNTIMES, LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.controller import Controller, Result
from noctaya_operator.kube.events import EventRecorder
from noctaya_operator.kube.listwatch import Timing
from noctaya_operator.kube.metrics import KubeMetrics
from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.workqueue import WorkQueue
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.observe import Observer
from noctaya_operator.progress_poller import Fetch, ProgressPoller, fetch_progress
from noctaya_operator.publish import StatusWriter
from noctaya_operator.pull_times import PullTimes
from noctaya_operator.reconciler import Parts, ServiceReconciler
from noctaya_operator.reporter import Reporter
from noctaya_operator.routing import OBJECTS, route
from noctaya_operator.runtime_catalog import RuntimeCatalog
from noctaya_operator.runtime_status import RuntimeReconciler, route_runtimes
from noctaya_operator.settings import identity

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICES = "llmservice"
RUNTIMES = "inferenceruntime"

Reconcile = Callable[[Key], Awaitable[Result]]


def wall_clock() -> datetime:
    """Now."""
    return datetime.now(UTC)


class Operator:
    """The operator without the process around it.

    Args:
        client: the API server; closed by the caller.
        defaults: images and gateways of every service.
        registry: takes the metrics.
        namespaces: work in these only; None for all.
        workers: services worked on at once.
        now: wall clock.
        timing: of the reflectors.
        kube_metrics: metrics of the controller runtime, when the caller made them for its client.
        tracing: where traces of activations go; None for nowhere.
        fetch: asks a prewarm agent for its progress, and gateways for their activations.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        defaults: Defaults,
        registry: CollectorRegistry,
        namespaces: Sequence[str] | None = None,
        workers: int = 4,
        now: Callable[[], datetime] = wall_clock,
        timing: Timing | None = None,
        kube_metrics: KubeMetrics | None = None,
        tracing: TracerProvider | None = None,
        fetch: Fetch = fetch_progress,
    ) -> None:
        self.identity = identity(str(uuid.uuid4()))
        self._kube_metrics = kube_metrics or KubeMetrics(registry)
        self._workers = workers
        metrics = OperatorMetrics(registry)
        self.caches = Caches(
            client,
            namespaces=namespaces,
            timing=timing,
            on_failure=self._kube_metrics.reflector_failed,
        )
        reflectors = self.caches.reflectors
        metrics.watch_services(reflectors[LLM_SERVICES].cache)
        self.recorder = EventRecorder(
            client,
            controller=names.EVENT_CONTROLLER,
            instance=self.identity,
            now=now,
            on_result=self._kube_metrics.event_result,
        )
        live = LiveObjects(client, {kind: reflectors[kind] for kind in WRITTEN}, keep=pruning.keep_written)
        writer = StatusWriter(client, reflectors[LLM_SERVICES], LLM_SERVICES, metrics=metrics)
        self._activations = ActivationPoller(fetch, now=now)
        self._tracer = ActivationTracer(tracing, parent_of=self._activations.parent_of)
        reporter = Reporter(writer, self.recorder, metrics=metrics, tracer=self._tracer)
        self._progress = ProgressPoller(fetch)
        self._catalog = RuntimeCatalog(reflectors[INFERENCE_RUNTIMES])
        self._services = ServiceReconciler(
            Parts(
                runtimes=self._catalog,
                scaled_objects=reflectors[SCALED_OBJECTS],
                live=live,
                ensurer=Ensurer(client, live, metrics=metrics),
                observer=Observer(self.caches, live),
                reporter=reporter,
                notices=GatewayNotices(client, reporter, metrics=metrics, now=now),
                progress=self._progress,
                activations=self._activations,
                pulls=PullTimes(client),
                troubles=JobTroubles(client, now=now),
                defaults=defaults,
                now=now,
            )
        )
        self._runtimes = RuntimeReconciler(
            self.caches,
            StatusWriter(client, reflectors[INFERENCE_RUNTIMES], INFERENCE_RUNTIMES, metrics=metrics),
            defaults=defaults,
            now=now,
        )

    async def follow(self) -> None:
        """Keep the caches and write Events until cancelled; a standby does this too."""
        async with asyncio.TaskGroup() as running:
            for reflector in self.caches.reflectors.values():
                running.create_task(reflector.run())
            running.create_task(self.recorder.run(), name="events")

    async def work(self) -> None:
        """Reconcile until cancelled; returns after the last pass has stopped. Once only."""
        await self.caches.synced()
        services = self._queue(SERVICES)
        runtimes = self._queue(RUNTIMES)
        route(self.caches, self._catalog, services)
        route_runtimes(self.caches, runtimes)
        for poller in (self._progress, self._activations):
            poller.subscribe(lambda service: services.add(service, lane=OBJECTS))
        controllers = (
            self._controller(SERVICES, self._services.reconcile, services, self._workers),
            self._controller(RUNTIMES, self._runtimes.reconcile, runtimes, 1),
        )
        try:
            async with asyncio.TaskGroup() as running:
                for controller in controllers:
                    running.create_task(controller.run())
        finally:
            await self._progress.close()
            await self._activations.close()
            self._tracer.close()

    def _queue(self, name: str) -> WorkQueue[Key]:
        observer = self._kube_metrics.queue(name)
        queue: WorkQueue[Key] = WorkQueue(observer=observer)
        observer.attach(queue)
        return queue

    def _controller(
        self, name: str, reconcile: Reconcile, queue: WorkQueue[Key], workers: int
    ) -> Controller[Key]:
        return Controller(
            name,
            reconcile,
            queue=queue,
            workers=workers,
            observer=self._kube_metrics.controller(name),
        )
