"""What the gateway counts, and how Prometheus reads it (contracts 3.10).

The hot path increments plain integers; a collector turns them into metric families when `/metrics` is
read. Gauges are read from their owners at that moment and are never stored. Families with a label are
absent until they have a first sample; that is contract. Every name is documented in the README of this
service. Each bucket of the wait's histogram keeps the last request that fell into it as its exemplar, for
readers that ask for OpenMetrics.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar

PREFIX = "noctaya_gateway_"
WAIT_BUCKETS = (0.01, 0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds in seconds of `noctaya_gateway_activation_wait_seconds` (contracts 3.10)."""


class GatewayMetrics:
    """Counters of one gateway; every method is a few machine steps."""

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._exemplars: list[Exemplar | None] = [None] * (len(WAIT_BUCKETS) + 1)
        self.responses: defaultdict[int, int] = defaultdict(int)
        self.rejections: defaultdict[str, int] = defaultdict(int)
        self.reports: defaultdict[str, int] = defaultdict(int)
        self.upstream_errors: defaultdict[str, int] = defaultdict(int)
        self.disconnects: defaultdict[str, int] = defaultdict(int)
        self.reconnects: defaultdict[str, int] = defaultdict(int)
        self.activations: defaultdict[str, int] = defaultdict(int)
        self.replays = 0
        self.wait_counts = [0] * (len(WAIT_BUCKETS) + 1)
        self.wait_sum = 0.0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._labelled: dict[str, tuple[str, str, Callable[[], dict[str, float]]]] = {}
        self._counters: dict[str, tuple[str, Callable[[], float]]] = {}
        self._collectors: list[Callable[[], Iterator[Metric]]] = []

    def response(self, status: int) -> None:
        """A response ended with `status`: what happened, also when a stream's 200 was already sent."""
        self.responses[status] += 1

    def rejection(self, reason: str) -> None:
        """A request was refused; `reason` is GatewayError.reason."""
        self.rejections[reason] += 1

    def waited(self, seconds: float, *, activation_id: str = "", trace_id: str = "") -> None:
        """A held request was released to a ready backend after `seconds`; the ids find it again."""
        bucket = bisect_left(WAIT_BUCKETS, seconds)
        self.wait_counts[bucket] += 1
        self.wait_sum += seconds
        if activation_id:
            labels = {"activation_id": activation_id}
            if trace_id:
                labels["trace_id"] = trace_id
            self._exemplars[bucket] = Exemplar(labels, seconds, self._wall())

    def replay(self) -> None:
        """A request was sent once more because its pooled connection was dead."""
        self.replays += 1

    def upstream_error(self, kind: str) -> None:
        """The backend failed a request; kind: connect, cut, protocol, timeout."""
        self.upstream_errors[kind] += 1

    def upstream_cut(self) -> None:
        """The backend broke off in the middle of a response."""
        self.upstream_errors["cut"] += 1

    def disconnect(self, phase: str) -> None:
        """A client left early; phase: body, held, upstream, response."""
        self.disconnects[phase] += 1

    def report(self, result: str) -> None:
        """A demand report was sent; result: success, error."""
        self.reports[result] += 1

    def reconnect(self, kind: str) -> None:
        """A control connection was given up; kind: probe, report."""
        self.reconnects[kind] += 1

    def activation(self, result: str) -> None:
        """An activation ended; result: ready, expired, failed."""
        self.activations[result] += 1

    def gauge(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Export `read()` as the gauge `noctaya_gateway_<name>`."""
        self._gauges[name] = (documentation, read)

    def labelled_gauge(
        self, name: str, documentation: str, label: str, read: Callable[[], dict[str, float]]
    ) -> None:
        """Export `read()` - label value to number - as the gauge `noctaya_gateway_<name>`."""
        self._labelled[name] = (documentation, label, read)

    def counter(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Export `read()`, which never falls, as the counter `noctaya_gateway_<name>_total`."""
        self._counters[name] = (documentation, read)

    def families(self, collect: Callable[[], Iterator[Metric]]) -> None:
        """Export the families that `collect()` makes, names and all."""
        self._collectors.append(collect)

    def collect(self) -> Iterator[Metric]:
        """The families of this moment; the prometheus_client collector interface."""
        for name, (documentation, read) in self._gauges.items():
            yield GaugeMetricFamily(PREFIX + name, documentation, value=read())
        for name, (documentation, label, read_all) in self._labelled.items():
            gauge = GaugeMetricFamily(PREFIX + name, documentation, labels=(label,))
            for value, number in read_all().items():
                gauge.add_metric((value,), number)
            yield gauge
        for name, (documentation, read) in self._counters.items():
            yield CounterMetricFamily(PREFIX + name, documentation, value=read())
        yield CounterMetricFamily(
            PREFIX + "replays", "Requests sent once more after a dead pooled connection.", value=self.replays
        )
        for collect in self._collectors:
            yield from collect()
        yield from self._labelled_counters()
        yield self._wait_histogram()

    def _labelled_counters(self) -> Iterator[Metric]:
        codes = {str(code): count for code, count in self.responses.items()}
        for name, documentation, label, counts in (
            ("requests", "Responses by HTTP status.", "code", codes),
            ("rejections", "Requests refused by the gateway.", "reason", self.rejections),
            ("demand_reports", "Demand reports sent to the aggregate scaler.", "result", self.reports),
            ("upstream_errors", "Requests the backend failed.", "kind", self.upstream_errors),
            (
                "client_disconnects",
                "Clients that left before their response ended.",
                "phase",
                self.disconnects,
            ),
            ("control_reconnects", "Control connections given up after an error.", "kind", self.reconnects),
            ("activations", "Activations by outcome.", "result", self.activations),
        ):
            family = CounterMetricFamily(PREFIX + name, documentation, labels=(label,))
            for value, count in counts.items():
                family.add_metric((value,), count)
            if family.samples:
                yield family

    def _wait_histogram(self) -> Metric:
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        total = 0
        bounds = (*map(str, WAIT_BUCKETS), "+Inf")
        for bound, count, exemplar in zip(bounds, self.wait_counts, self._exemplars, strict=True):
            total += count
            buckets.append((bound, total) if exemplar is None else (bound, total, exemplar))
        return HistogramMetricFamily(
            PREFIX + "activation_wait_seconds",
            "Seconds a held request waited until it was released to a ready backend.",
            buckets=buckets,
            sum_value=self.wait_sum,
        )
