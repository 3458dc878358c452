"""Prometheus metrics under controller-runtime's and client-go's names, so that existing dashboards work."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.resources import Resource
from noctaya_operator.kube.transport import RequestDone
from noctaya_operator.kube.workqueue import WorkQueue

QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)
RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0),
    *(30.0, 40.0, 50.0, 60.0),
)
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
OUTCOMES = ("success", "requeue_after", "error", "requeue")


class KubeMetrics:
    """Every metric of the controller runtime, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        queue = ["name", "controller"]
        self.depth = Gauge("workqueue_depth", "Keys waiting.", queue, registry=registry)
        self.adds = Counter("workqueue_adds", "Keys queued.", queue, registry=registry)
        self.retries = Counter(
            "workqueue_retries", "Keys queued again after a failure.", queue, registry=registry
        )
        self.queue_duration = Histogram(
            "workqueue_queue_duration_seconds",
            "How long keys wait.",
            queue,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.work_duration = Histogram(
            "workqueue_work_duration_seconds",
            "How long work on a key takes.",
            queue,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress, all keys.",
            queue,
            registry=registry,
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds of the longest work in progress.",
            queue,
            registry=registry,
        )
        controller = ["controller"]
        self.reconciles = Counter(
            "controller_runtime_reconcile",
            "Reconciles by result.",
            ["controller", "result"],
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors", "Reconciles that failed.", controller, registry=registry
        )
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed and are not tried again.",
            controller,
            registry=registry,
        )
        self.panics = Counter(
            "controller_runtime_reconcile_panics",
            "Reconciles that failed in an unforeseen way.",
            controller,
            registry=registry,
        )
        self.timeouts = Counter(
            "controller_runtime_reconcile_timeouts",
            "Reconciles ended for taking too long.",
            controller,
            registry=registry,
        )
        self.reconcile_time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a reconcile takes.",
            controller,
            buckets=RECONCILE_BUCKETS,
            registry=registry,
        )
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers.", controller, registry=registry
        )
        self.active = Gauge(
            "controller_runtime_active_workers", "Workers at work.", controller, registry=registry
        )
        self.master = Gauge(
            "leader_election_master_status", "1 while this process leads.", ["name"], registry=registry
        )
        self.client_requests = Counter(
            "rest_client_requests",
            "Requests to the API server.",
            ["code", "method", "host"],
            registry=registry,
        )
        self.client_duration = Histogram(
            "rest_client_request_duration_seconds",
            "Until the head of the answer arrived.",
            ["verb", "host"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self.kind_requests = Counter(
            "kube_client_requests",
            "Requests to the API server by verb and kind; code 0 means no answer.",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self.watch_failures = Counter(
            "kube_reflector_failures", "Failed lists and watches.", ["resource", "reason"], registry=registry
        )
        self.events = Counter(
            "kube_events", "Events written, failed or dropped.", ["result"], registry=registry
        )

    def request_done(self, done: RequestDone) -> None:
        """Count a request; give it to `KubeClient` as `observe`."""
        code = str(done.status) if done.status else "<error>"
        self.client_requests.labels(code, done.method, done.host).inc()
        if done.verb != "watch":
            self.client_duration.labels(done.verb, done.host).observe(done.seconds)
        self.kind_requests.labels(done.verb, str(done.resource), str(done.status)).inc()

    def reflector_failed(self, resource: Resource, error: ApiError) -> None:
        """Count a failed list or watch; give it to `Reflector` as `on_failure`."""
        self.watch_failures.labels(str(resource), error.reason or str(error.status)).inc()

    def event_result(self, result: str) -> None:
        """Count an event; give it to `EventRecorder` as `on_result`."""
        self.events.labels(result).inc()

    def leading(self, name: str, leading: bool) -> None:
        """Say whether this process leads."""
        self.master.labels(name).set(int(leading))

    def queue(self, name: str) -> QueueMetrics:
        """The observer of one queue; call its `attach` with the queue."""
        return QueueMetrics(self, name)

    def controller(self, name: str) -> ControllerMetrics:
        """The observer of one controller."""
        return ControllerMetrics(self, name)


class QueueMetrics:
    """Observer of one work queue."""

    def __init__(self, metrics: KubeMetrics, name: str) -> None:
        self._adds = metrics.adds.labels(name, name)
        self._retries = metrics.retries.labels(name, name)
        self._waited = metrics.queue_duration.labels(name, name)
        self._worked = metrics.work_duration.labels(name, name)
        self._depth = metrics.depth.labels(name, name)
        self._unfinished = metrics.unfinished.labels(name, name)
        self._longest = metrics.longest.labels(name, name)

    def attach(self, queue: WorkQueue[Any]) -> None:
        """Read depth and work in progress from the queue at every scrape."""
        self._depth.set_function(lambda: float(len(queue)))
        self._unfinished.set_function(lambda: sum(queue.in_work()))
        self._longest.set_function(lambda: max(queue.in_work(), default=0.0))

    def added(self) -> None:
        """A key was queued."""
        self._adds.inc()

    def retried(self) -> None:
        """A key was delayed because of a failure."""
        self._retries.inc()

    def taken(self, waited: float) -> None:
        """A key was taken into work."""
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        """Work on a key ended."""
        self._worked.observe(worked)


class ControllerMetrics:
    """Observer of one controller."""

    def __init__(self, metrics: KubeMetrics, name: str) -> None:
        self._metrics = metrics
        self._name = name
        for outcome in OUTCOMES:
            metrics.reconciles.labels(name, outcome)
        self._errors = metrics.reconcile_errors.labels(name)
        self._terminal = metrics.terminal_errors.labels(name)
        self._panics = metrics.panics.labels(name)
        self._timeouts = metrics.timeouts.labels(name)
        self._time = metrics.reconcile_time.labels(name)
        self._active = metrics.active.labels(name)

    def started(self, workers: int) -> None:
        """The controller runs with so many workers."""
        self._metrics.workers.labels(self._name).set(workers)

    def began(self) -> None:
        """A reconcile began."""
        self._active.inc()

    def ended(self, outcome: str, seconds: float) -> None:
        """A reconcile ended."""
        self._active.dec()
        self._time.observe(seconds)
        result = outcome if outcome in OUTCOMES else "error"
        self._metrics.reconciles.labels(self._name, result).inc()
        if result == "error":
            self._errors.inc()
        if outcome == "terminal_error":
            self._terminal.inc()
        elif outcome == "panic":
            self._panics.inc()
        elif outcome == "timeout":
            self._timeouts.inc()
