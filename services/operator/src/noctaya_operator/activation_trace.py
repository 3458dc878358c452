"""A finished activation as a trace: one span for the whole, one below it for each phase.

The spans are made afterwards, with the times of the record, and only where a collector is configured.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from noctaya_api.activation_timeline import spans
from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

from noctaya_operator.kube.objects import Key

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class ActivationTracer:
    """Emits spans of activations; without a provider it does nothing."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._tracer = provider.get_tracer("noctaya_operator") if provider is not None else None

    def record(self, service: Key, record: ActivationRecord) -> None:
        """Emit the trace of one finished activation."""
        if self._tracer is None or record.ready is None:
            return
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  only where traces are wanted

        attributes = {
            "k8s.namespace.name": service.namespace,
            "noctaya.llmservice": service.name,
            "k8s.pod.name": record.pod or "",
        }
        begun = datetime.fromisoformat(record.requested)
        whole = self._tracer.start_span("activation", start_time=_nanoseconds(begun), attributes=attributes)
        inside = set_span_in_context(whole)
        for phase, start, end in spans(record):
            span = self._tracer.start_span(
                f"activation.{phase}", context=inside, start_time=_nanoseconds(start)
            )
            span.end(end_time=_nanoseconds(end))
        whole.end(end_time=_nanoseconds(max(begun, datetime.fromisoformat(record.ready))))


def _nanoseconds(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, time.tzinfo)) // timedelta(microseconds=1) * 1000
