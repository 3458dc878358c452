from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from noctaya_gateway.timeline import ActivationTimeline
from noctaya_gateway.tracing import Tracing
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Rig:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(provider)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.tracing.close()


def test_a_request_has_a_span_with_one_child_for_each_phase(rig: Rig) -> None:
    trace = rig.tracing.begin(b"POST", b"/v1/chat/completions?x=1", [])
    for phase in ("admission", "activation", "upstream"):
        trace.phase(phase)
    trace.end(200)
    spans = rig.spans()
    root = spans["POST /v1/chat/completions"]
    assert list(spans) == ["admission", "activation", "upstream", "POST /v1/chat/completions"]
    for phase in ("admission", "activation", "upstream"):
        parent = spans[phase].parent
        assert parent is not None
        assert root.context is not None
        assert parent.span_id == root.context.span_id
    assert root.attributes is not None
    assert root.attributes["http.response.status_code"] == 200
    assert root.attributes["url.path"] == "/v1/chat/completions"
    kinds = {name: span.kind for name, span in spans.items() if span.kind is not SpanKind.INTERNAL}
    assert kinds == {"POST /v1/chat/completions": SpanKind.SERVER, "upstream": SpanKind.CLIENT}


def test_g11_the_clients_traceparent_is_continued_upstream(rig: Rig) -> None:
    trace = rig.tracing.begin(b"POST", b"/", [(b"TraceParent", PARENT), (b"x", b"y")])
    trace.phase("upstream")
    version, trace_id, span_id, flags = trace.traceparent.split(b"-")
    assert (version, trace_id, flags) == (b"00", PARENT.split(b"-")[1], b"01")
    trace.end(200)
    upstream = rig.spans()["upstream"].context
    assert upstream is not None
    assert span_id == b"%016x" % upstream.span_id


def test_without_a_client_trace_a_new_one_begins(rig: Rig) -> None:
    trace = rig.tracing.begin(b"GET", b"/", [])
    assert len(trace.traceparent) == len(PARENT)
    trace.end(204)


def test_t1_the_wait_names_the_activation_and_links_to_the_request_that_began_it(rig: Rig) -> None:
    line = ActivationTimeline()
    first = rig.tracing.begin(b"POST", b"/first", [(b"traceparent", PARENT)])
    with line.asked_by(first):
        line.begun()
    second = rig.tracing.begin(b"POST", b"/second", [])
    for trace in (first, second):
        trace.wait(line.current)
        trace.end(200)
    assert line.activation_id == first.trace_id == PARENT.split(b"-")[1].decode() != second.trace_id
    began, joined = (span for span in rig.exporter.get_finished_spans() if span.name == "activation")
    for span in (began, joined):
        assert span.attributes == {"noctaya.activation.id": line.activation_id}
    assert not began.links
    root = rig.spans()["POST /first"].context
    assert root is not None
    (link,) = joined.links
    assert (link.context.trace_id, link.context.span_id) == (root.trace_id, root.span_id)


def test_t1_a_wait_for_an_activation_that_nobody_traced_links_to_nothing(rig: Rig) -> None:
    line = ActivationTimeline()
    line.begun()
    trace = rig.tracing.begin(b"POST", b"/", [])
    trace.wait(line.current)
    trace.end(200)
    span = rig.spans()["activation"]
    assert (span.attributes, list(span.links)) == ({"noctaya.activation.id": line.activation_id}, [])


def test_a_server_error_and_a_client_that_left_are_told_apart(rig: Rig) -> None:
    rig.tracing.begin(b"POST", b"/failed", []).end(503)
    rig.tracing.begin(b"POST", b"/left", []).end(None)
    spans = rig.spans()
    assert spans["POST /failed"].status.status_code is StatusCode.ERROR
    assert spans["POST /left"].attributes == {
        "http.request.method": "POST",
        "url.path": "/left",
        "noctaya.client_left": True,
    }


def test_a_collector_that_hangs_does_not_hold_up_the_stop() -> None:
    release = threading.Event()

    class Hanging(SpanProcessor):
        def shutdown(self) -> None:
            release.wait(30)

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Hanging())
    began = time.monotonic()
    Tracing(provider).close(timeout=0.05)
    assert time.monotonic() - began < 10
    release.set()
