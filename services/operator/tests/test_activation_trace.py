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


ID = "0af7651916cd43dd8448eb211c80319c"


class Traced:
    """A tracer whose spans can be looked at."""

    def __init__(self, *, parent: str = "") -> None:
        self.exporter, self.provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = ActivationTracer(self.provider, parent_of=lambda service, activation: parent)

    def trace_ids(self) -> list[str]:
        contexts = [span.context for span in self.exporter.get_finished_spans()]
        self.exporter.clear()
        return sorted({f"{context.trace_id:032x}" for context in contexts if context is not None})


def test_t1_the_trace_id_is_the_activations_and_the_next_trace_has_another() -> None:
    traced = Traced()
    traced.tracer.record(Key("team", "chat"), RECORD.model_copy(update={"id": ID}))
    (whole,) = (each for each in traced.exporter.get_finished_spans() if each.name == "activation")
    assert dict(whole.attributes or {})["noctaya.activation.id"] == ID
    assert traced.trace_ids() == [ID]
    traced.tracer.record(Key("team", "chat"), RECORD)
    (other,) = traced.trace_ids()
    assert other != ID
    traced.provider.shutdown()


def test_t1_the_phases_lie_below_the_request_that_began_the_activation() -> None:
    traced = Traced(parent=f"00-{ID}-b7ad6b7169203331-01")
    traced.tracer.record(Key("team", "chat"), RECORD.model_copy(update={"id": ID}))
    (whole,) = (each for each in traced.exporter.get_finished_spans() if each.name == "activation")
    assert whole.parent is not None
    assert f"{whole.parent.span_id:016x}" == "b7ad6b7169203331"
    assert traced.trace_ids() == [ID]
    traced.provider.shutdown()


def test_t1_the_first_byte_ends_the_whole() -> None:
    traced = Traced()
    traced.tracer.record(
        Key("team", "chat"), RECORD.model_copy(update={"first_byte": "2026-11-30T08:01:06.500Z"})
    )
    spans = {span.name: span for span in traced.exporter.get_finished_spans()}
    answered = spans["activation.first_byte"]
    assert answered.end_time == spans["activation"].end_time
    assert (answered.end_time or 0) - (answered.start_time or 0) == 1_500_000_000
    traced.provider.shutdown()
