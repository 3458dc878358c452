"""T1: a finished activation as a trace."""

from __future__ import annotations

import asyncio

import pytest
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from noctaya_operator.activation_poller import AFTER_READY
from noctaya_operator.activation_trace import ActivationTracer
from noctaya_operator.kube.objects import Key
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

pytestmark = pytest.mark.looptime

RECORD = ActivationRecord(
    outcome=ActivationOutcome.SUCCEEDED,
    pod="chat-abc",
    requested="2026-11-30T08:00:00.250Z",
    replicas_written="2026-11-30T08:00:01Z",
    scheduled="2026-11-30T08:00:02Z",
    started="2026-11-30T08:00:05Z",
    ready="2026-11-30T08:01:05Z",
)
ANSWERED = RECORD.model_copy(update={"first_byte": "2026-11-30T08:01:06.500Z"})
ID = "0af7651916cd43dd8448eb211c80319c"
CHAT = Key("team", "chat")


class Traced:
    """A tracer whose spans can be looked at."""

    def __init__(self, *, parent: str = "") -> None:
        self.exporter, self.provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.parent = parent
        self.tracer = ActivationTracer(self.provider, parent_of=lambda service, activation: self.parent)

    def spans(self) -> dict[str, ReadableSpan]:
        """What was emitted since the last look, by name."""
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        spans = {span.name: span for span in found}
        assert len(spans) == len(found), "a span was emitted twice"
        return spans


def trace_ids(spans: dict[str, ReadableSpan]) -> set[str]:
    contexts = [span.context for span in spans.values()]
    return {f"{context.trace_id:032x}" for context in contexts if context is not None}


def with_id(record: ActivationRecord) -> ActivationRecord:
    return record.model_copy(update={"id": ID})


async def test_t1_every_phase_is_a_span_below_the_whole_which_the_first_byte_ends() -> None:
    traced = Traced()
    traced.tracer.record(CHAT, ANSWERED)
    spans = traced.spans()
    whole = spans["activation"]
    seconds = {name: ((span.end_time or 0) - (span.start_time or 0)) / 1e9 for name, span in spans.items()}
    assert seconds == {
        "activation": 66.25,
        "activation.autoscaling": 0.75,
        "activation.scheduling": 1.0,
        "activation.start": 3.0,
        "activation.load": 60.0,
        "activation.first_byte": 1.5,
    }
    below = [span for name, span in spans.items() if name != "activation"]
    assert whole.context is not None
    assert all(span.parent is not None and span.parent.span_id == whole.context.span_id for span in below)
    assert dict(whole.attributes or {})["noctaya.llmservice"] == "chat"
    traced.provider.shutdown()


async def test_t1_without_a_collector_nothing_happens() -> None:
    tracer = ActivationTracer(None)
    tracer.record(CHAT, RECORD)
    tracer.update(CHAT, ANSWERED)
    tracer.close()


async def test_t1_the_trace_id_is_the_activations_and_the_next_trace_has_another() -> None:
    traced = Traced()
    traced.tracer.record(CHAT, with_id(ANSWERED))
    spans = traced.spans()
    assert dict(spans["activation"].attributes or {})["noctaya.activation.id"] == ID
    assert trace_ids(spans) == {ID}
    traced.tracer.record(CHAT, ANSWERED)
    (other,) = trace_ids(traced.spans())
    assert other != ID
    traced.provider.shutdown()


async def test_t1_the_phases_lie_below_the_request_that_began_the_activation() -> None:
    traced = Traced(parent=f"00-{ID}-b7ad6b7169203331-01")
    traced.tracer.record(CHAT, with_id(ANSWERED))
    spans = traced.spans()
    parent = spans["activation"].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == "b7ad6b7169203331"
    assert trace_ids(spans) == {ID}
    traced.provider.shutdown()


async def test_t1_a_success_whose_id_and_first_byte_are_not_told_yet_waits_for_them() -> None:
    traced = Traced()
    traced.tracer.record(CHAT, RECORD)
    traced.parent = f"00-{ID}-b7ad6b7169203331-01"
    traced.tracer.update(CHAT, with_id(RECORD))
    traced.parent = ""  # gateways are asked no more once there is nothing to hear
    assert traced.spans() == {}
    traced.tracer.update(CHAT, with_id(ANSWERED))
    spans = traced.spans()
    assert "activation.first_byte" in spans
    assert trace_ids(spans) == {ID}
    parent = spans["activation"].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == "b7ad6b7169203331"
    traced.tracer.update(CHAT, with_id(ANSWERED))
    await asyncio.sleep(AFTER_READY + 1)
    assert traced.spans() == {}, "it is told once"
    traced.provider.shutdown()


async def test_t1_where_no_first_byte_comes_the_trace_does_without_once_nobody_is_asked_any_more() -> None:
    traced = Traced()
    traced.tracer.record(CHAT, with_id(RECORD))
    await asyncio.sleep(AFTER_READY - 1)
    assert traced.spans() == {}
    await asyncio.sleep(2)
    spans = traced.spans()
    assert trace_ids(spans) == {ID}
    assert "activation.first_byte" not in spans
    traced.provider.shutdown()


@pytest.mark.parametrize("event", ["ended", "next", "forgotten", "closed"])
async def test_t1_a_trace_that_waits_is_not_lost(event: str) -> None:
    traced = Traced()
    traced.tracer.record(CHAT, with_id(RECORD))
    match event:
        case "ended":
            ended = {"ended": "2026-11-30T08:01:30Z"}
            traced.tracer.update(CHAT, with_id(RECORD).model_copy(update=ended))
        case "next":
            traced.tracer.record(CHAT, RECORD.model_copy(update={"requested": "2026-11-30T09:00:00Z"}))
        case "forgotten":
            traced.tracer.settle(CHAT)
        case "closed":
            traced.tracer.close()
    spans = traced.spans()
    assert trace_ids(spans) == {ID}
    assert "activation.load" in spans
    traced.tracer.close()
    traced.provider.shutdown()


async def test_t1_what_becomes_known_of_another_activation_changes_nothing() -> None:
    traced = Traced()
    traced.tracer.update(CHAT, ANSWERED)
    traced.tracer.record(CHAT, with_id(RECORD))
    traced.tracer.update(CHAT, ANSWERED.model_copy(update={"requested": "2026-11-30T09:00:00Z"}))
    assert traced.spans() == {}
    traced.tracer.close()
    traced.provider.shutdown()
