"""The collector of scenarios takes what the SDK's own exporter sends."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import httpx
import pytest
from noctaya_scenarios.span_receiver import Receiver
from noctaya_scenarios.traces import Span, spans_of
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.received.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def received(url: str) -> list[Span]:
    messages = httpx.get(f"{url}/received", trust_env=False).json()
    return [span for each in messages for span in spans_of(base64.b64decode(each["message"]))]


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_spans_come_back_with_their_ids_attributes_and_resource(
    receiver: str, compression: Compression
) -> None:
    exporter = OTLPSpanExporter(f"{receiver}/v1/traces", compression=compression)
    provider = TracerProvider(resource=Resource({"service.name": "program"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("outer", attributes={"answer": 42}):
        provider.get_tracer("test").start_span("inner").end()
    provider.shutdown()
    inner, outer = received(receiver)
    assert (inner.name, inner.parent_id, inner.trace_id) == ("inner", outer.span_id, outer.trace_id)
    assert (outer.name, outer.parent_id, outer.attributes, outer.of) == (
        "outer",
        "",
        {"answer": 42},
        "program",
    )
    assert len(outer.trace_id) == 32
    assert outer.begin <= inner.begin <= inner.end <= outer.end


def test_what_no_collector_takes_is_refused(receiver: str) -> None:
    protobuf = {"content-type": "application/x-protobuf"}
    with httpx.Client(base_url=receiver, trust_env=False) as client:
        assert client.post("/v1/metrics", content=b"", headers=protobuf).status_code == 404
        assert client.post("/v1/traces", json={}).status_code == 415
        assert client.get("/received").json() == []
