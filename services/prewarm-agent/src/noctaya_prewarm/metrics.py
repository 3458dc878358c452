"""The agent's metrics, rendered from the run's progress when somebody scrapes."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from noctaya_prewarm.progress import Progress, State


class ProgressCollector:
    """Renders one run; register it with a registry."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def collect(self) -> Iterator[Metric]:
        """All families."""
        now = self._progress.snapshot()
        for name, text, value in (
            ("noctaya_prewarm_bytes", "Bytes of the model that are here.", now.bytesDone),
            (
                "noctaya_prewarm_bytes_expected",
                "Bytes of the whole model; 0 before it is listed.",
                now.bytesTotal,
            ),
            ("noctaya_prewarm_bytes_per_second", "Rate of the last seconds.", now.bytesPerSecond),
            ("noctaya_prewarm_attempt", "Number of the try of this process, from 1.", now.attempt),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        if now.etaSeconds is not None:
            yield GaugeMetricFamily(
                "noctaya_prewarm_eta_seconds", "Time left at this rate.", value=now.etaSeconds
            )
        states = GaugeMetricFamily(
            "noctaya_prewarm_state", "1 for the state the run is in.", labels=["state"]
        )
        for state in State:
            states.add_metric([state.value], 1 if state.value == now.state else 0)
        yield states
        for name, text, count in (
            ("noctaya_prewarm_received_bytes", "Bytes received and written.", self._progress.moved),
            ("noctaya_prewarm_retries", "Requests that were tried again.", self._progress.retries),
            (
                "noctaya_prewarm_stalls",
                "Ranges that came too slowly and were restarted.",
                self._progress.stalls,
            ),
        ):
            yield CounterMetricFamily(name, text, value=count)


def register(registry: CollectorRegistry, progress: Progress) -> None:
    """Add the collector to `registry`."""
    registry.register(ProgressCollector(progress))
