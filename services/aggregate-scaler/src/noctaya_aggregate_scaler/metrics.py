"""The scaler's metrics: names of contracts 4.3, and what behaviour S1 and S2 added.

Counts are plain integers and are turned into samples when somebody scrapes: a report costs an addition, not a
lookup of labels under a lock.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from noctaya_aggregate_scaler.aggregate import Aggregate


class ScalerMetrics:
    """Counts of one process. Labelled counters are absent until their first use."""

    def __init__(self) -> None:
        self.reports: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.tls_reloads: Counter[str] = Counter()
        self.clamped = 0
        self.streams = 0
        self.certificate_expires: Callable[[], datetime | None] = lambda: None
        """End of validity of the certificate shown to KEDA, asked for at each scrape."""

    def stream_count(self, count: int) -> None:
        """Open StreamIsActive calls from now on."""
        self.streams = count

    def tls_reload(self, taken: bool) -> None:
        """Changed TLS files were taken up, or refused."""
        self.tls_reloads["success" if taken else "error"] += 1


class ScalerCollector:
    """Renders the counts and the aggregate's figures at scrape time; register it with a registry."""

    def __init__(self, metrics: ScalerMetrics, aggregate: Aggregate) -> None:
        self._metrics = metrics
        self._aggregate = aggregate

    def collect(self) -> Iterator[Metric]:
        """All families but those without a sample yet."""
        aggregate, metrics = self._aggregate, self._metrics
        yield _gauge("noctaya_scaler_demand", "Sum of demand over live gateway members.", aggregate.total)
        yield _gauge("noctaya_scaler_gateway_members", "Live gateway members.", aggregate.members)
        yield _gauge(
            "noctaya_scaler_demand_unknown",
            "1 while a start is so recent that demand is not told to KEDA yet, else 0.",
            0 if aggregate.known else 1,
        )
        yield _gauge("noctaya_gateway_scaler_streams", "Open StreamIsActive calls.", metrics.streams)
        if (ends := metrics.certificate_expires()) is not None:
            expiry = GaugeMetricFamily(
                "noctaya_gateway_scaler_certificate_expiry_timestamp_seconds",
                "End of validity of the certificate shown to KEDA.",
                labels=["side"],
            )
            expiry.add_metric(["server"], ends.timestamp())
            yield expiry
        yield _counter("noctaya_scaler_expired_members", "Members that fell silent.", aggregate.expired)
        yield _counter("noctaya_scaler_clamped_reports", "Reports above the member bound.", metrics.clamped)
        for name, label, text, counts in (
            ("noctaya_scaler_demand_reports", "result", "Valid reports by outcome.", metrics.reports),
            ("noctaya_scaler_rejected_reports", "reason", "Refused report requests.", metrics.rejected),
            ("noctaya_scaler_tls_reloads", "result", "Changed TLS files taken up.", metrics.tls_reloads),
        ):
            family = CounterMetricFamily(name, text, labels=[label])
            for value, count in sorted(counts.items()):
                family.add_metric([value], count)
            if counts:
                yield family


def register(registry: CollectorRegistry, metrics: ScalerMetrics, aggregate: Aggregate) -> None:
    """Add the collector to `registry`."""
    registry.register(ScalerCollector(metrics, aggregate))


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, value=value)
