"""T1: a finished activation as a trace."""

from __future__ import annotations

from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from noctaya_operator.activation_trace import ActivationTracer
from noctaya_operator.kube.objects import Key
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

RECORD = ActivationRecord(
    outcome=ActivationOutcome.SUCCEEDED,
    pod="chat-abc",
    requested="2026-11-30T08:00:00.250Z",
    replicas_written="2026-11-30T08:00:01Z",
    scheduled="2026-11-30T08:00:02Z",
    started="2026-11-30T08:00:05Z",
    ready="2026-11-30T08:01:05Z",
)


def test_t1_every_phase_is_a_span_below_the_whole() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ActivationTracer(provider).record(Key("team", "chat"), RECORD)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    whole = spans["activation"]
    seconds = {name: ((span.end_time or 0) - (span.start_time or 0)) / 1e9 for name, span in spans.items()}
    assert seconds == {
        "activation": 64.75,
        "activation.autoscaling": 0.75,
        "activation.scheduling": 1.0,
        "activation.start": 3.0,
        "activation.load": 60.0,
    }
    below = [span for name, span in spans.items() if name != "activation"]
    assert whole.context is not None
    assert all(span.parent is not None and span.parent.span_id == whole.context.span_id for span in below)
    assert dict(whole.attributes or {})["noctaya.llmservice"] == "chat"
    provider.shutdown()


def test_t1_without_a_collector_nothing_happens() -> None:
    ActivationTracer(None).record(Key("team", "chat"), RECORD)
