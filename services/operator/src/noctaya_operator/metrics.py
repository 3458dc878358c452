"""Metrics of the operator's own work, beside those of the controller runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noctaya_api.conditions import Phase
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from noctaya_operator.kube.cache import Cache
from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import Resource

ACTIVATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)
"""From a process that is there already to weights of hundreds of gigabytes."""


_SERVICE = ("namespace", "llmservice")


class OperatorMetrics:
    """Every metric of the operator itself, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.writes = Counter(
            "noctaya_operator_writes",
            "Objects written, by kind and verb.",
            ["resource", "verb"],
            registry=registry,
        )
        self.activation = Histogram(
            "noctaya_activation_phase_seconds",
            "Time of activations by phase; phase total is the whole until ready.",
            [*_SERVICE, "phase"],
            buckets=ACTIVATION_BUCKETS,
            registry=registry,
        )
        self.activations = Counter(
            "noctaya_operator_activations",
            "Activations by outcome.",
            [*_SERVICE, "outcome"],
            registry=registry,
        )

    def wrote(self, resource: Resource, verb: str) -> None:
        """Count a write."""
        self.writes.labels(str(resource), verb).inc()

    def activated(self, service: Key, outcome: str) -> None:
        """Count an activation that came to an end."""
        self.activations.labels(service.namespace, service.name, outcome).inc()

    def phases(self, service: Key, phases: Mapping[str, float], *, activation_id: str | None) -> None:
        """Count the seconds of phases of an activation; its id, where known, becomes their exemplar."""
        exemplar = {"trace_id": activation_id} if activation_id else None
        for phase, seconds in phases.items():
            self.activation.labels(service.namespace, service.name, phase).observe(seconds, exemplar)

    def forget(self, service: Key) -> None:
        """Drop the series of a service that is gone."""
        for family in (self.activation, self.activations):
            family.remove_by_labels(dict(zip(_SERVICE, (service.namespace, service.name), strict=True)))

    def watch_services(self, services: Cache) -> None:
        """Show services by phase, and the progress of downloads, from what is cached at each scrape."""
        self._registry.register(_Services(services))


class _Services(Collector):
    def __init__(self, services: Cache) -> None:
        self._services = services

    def describe(self) -> Iterable[Metric]:
        return [self._phases(), *self._bytes()]

    def collect(self) -> Iterable[Metric]:
        phases, done, total = self._phases(), *self._bytes()
        counts = dict.fromkeys([*map(str, Phase), ""], 0)
        for service in self._services:
            status = service.get("status")
            status = status if isinstance(status, Mapping) else {}
            phase = str(status.get("phase") or "")
            counts[phase] = counts.get(phase, 0) + 1
            prewarm = status.get("prewarm")
            if isinstance(prewarm, Mapping):
                labels = [str(service["metadata"].get(name, "")) for name in ("namespace", "name")]
                for family, field in ((done, "bytesDone"), (total, "bytesTotal")):
                    if isinstance(prewarm.get(field), int):
                        family.add_metric(labels, prewarm[field])
        for phase, count in counts.items():
            phases.add_metric([phase], count)
        return [phases, done, total]

    def _phases(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "noctaya_operator_services",
            "LLMServices by phase; empty before the first pass.",
            labels=["phase"],
        )

    def _bytes(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        labels = list(_SERVICE)
        return (
            GaugeMetricFamily("noctaya_operator_prewarm_bytes_done", "Bytes downloaded.", labels=labels),
            GaugeMetricFamily("noctaya_operator_prewarm_bytes_total", "Bytes of the model.", labels=labels),
        )
