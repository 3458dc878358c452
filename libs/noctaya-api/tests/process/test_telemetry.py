"""Traces over a real collector's socket: who they are of, what is refused, what one that is away costs."""

import gc
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from noctaya_api.process.telemetry import (
    TracingUnusable,
    check_tracing,
    configure_tracing,
    flush_tracing,
)
from noctaya_api.process.trace_exporter import SHORTEST, CollectorExporter
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SECRET = "hunter2secret"


class Collector:
    """A collector's HTTP endpoint on loopback that keeps what it was sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.authorizations: list[str | None] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.received.append((self.path, body))
                collector.authorizations.append(self.headers.get("authorization"))
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Tests need no access log."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def test_without_an_endpoint_there_is_no_tracing() -> None:
    assert configure_tracing("noctaya-test", environ={}) is None
    assert configure_tracing("noctaya-test", environ={ENDPOINT: ""}) is None


@pytest.mark.parametrize("variable", [ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_spans_reach_the_configured_collector_with_the_services_name(
    variable: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, collector.url if variable == ENDPOINT else f"{collector.url}/v1/traces")
    provider = configure_tracing("noctaya-test")
    assert provider is not None
    with provider.get_tracer("test").start_as_current_span("activation"):
        pass
    provider.shutdown()
    ((path, body),) = collector.received
    assert path == "/v1/traces"
    assert b"noctaya-test" in body
    assert b"activation" in body


def test_a_trace_says_which_pod_it_is_of_and_the_environment_wins(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named-by-hand")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.namespace.name=theirs")
    monkeypatch.setenv("HOSTNAME", "chat-gateway-abc")
    outside = configure_tracing("noctaya-test")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    provider = configure_tracing("noctaya-test", attributes={"k8s.namespace.name": "ours", "a": "b"})
    assert provider is not None
    assert outside is not None
    found = provider.resource.attributes
    wanted = ("service.name", "k8s.namespace.name", "k8s.pod.name", "a")
    assert [found.get(name) for name in wanted] == ["named-by-hand", "theirs", "chat-gateway-abc", "b"]
    assert "k8s.pod.name" not in outside.resource.attributes
    provider.shutdown()
    outside.shutdown()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (f"http://user:{SECRET}@collector:4318", "NOCTAYA_TRACES_HEADERS_FILE"),
        (f"https://{SECRET}@collector", "must hold no user and no password"),
        (f"http://:{SECRET}@[::1", "is no URL"),
        (f"http://collector:4318?token={SECRET}", "no query"),
        (f"http://collector:4318#{SECRET}", "no fragment"),
        ("collector:4318", "must be an http:// or https:// URL"),
        ("grpc://collector:4317", "must be an http:// or https:// URL"),
        ("http://collector:99999", "is no URL"),
        ("http://collector:0", "must be an http:// or https:// URL"),
        ("http://", "must be an http:// or https:// URL"),
    ],
)
@pytest.mark.parametrize("variable", [ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_an_endpoint_that_holds_a_credential_or_is_no_url_is_refused_by_name(
    variable: str, value: str, problem: str
) -> None:
    with pytest.raises(TracingUnusable, match=f"^{variable}: ") as refused:
        configure_tracing("noctaya-test", environ={variable: value})
    assert problem in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"])
def test_headers_that_can_t_be_read_are_refused_without_being_told(variable: str) -> None:
    with pytest.raises(TracingUnusable, match=f"^{variable}: header 2 is no name=value") as refused:
        check_tracing({variable: f"a=b,Bearer {SECRET}"})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "endpoint", ["http://[::1]:4318", "https://c.example.com/otlp/", "http://collector.observability:4318"]
)
def test_an_endpoint_that_is_a_plain_url_is_taken(endpoint: str) -> None:
    check_tracing({ENDPOINT: endpoint, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x,a=b=c"})


def exporting(monkeypatch: pytest.MonkeyPatch, url: str, **given: object) -> TracerProvider:
    """Every span is sent when it ends."""
    monkeypatch.setenv(ENDPOINT, url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(CollectorExporter(**given)))  # type: ignore[arg-type]
    return provider


def emit(provider: TracerProvider) -> None:
    provider.get_tracer("test").start_span("span").end()


def test_headers_of_a_file_go_with_every_batch_and_are_read_again_when_they_change(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "headers"
    provider = exporting(monkeypatch, collector.url, headers=file)
    emit(provider)
    for text in ("authorization=Bearer%20one\n", "a=b, Authorization=Bearer two"):
        file.write_text(text)
        emit(provider)
    provider.shutdown()
    assert collector.authorizations == [None, "Bearer one", "Bearer two"]


def test_a_file_that_holds_no_headers_is_named_and_its_content_is_not(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "headers"
    file.write_text(f"Authorization: Bearer {SECRET}")
    provider = exporting(monkeypatch, collector.url, headers=file)
    emit(provider)
    provider.shutdown()
    assert not collector.received
    (line,) = caplog.records
    assert f"{file}: header 1 is no name=value" in vars(line)["reason"]
    assert SECRET not in str(vars(line))


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_is_over(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "noctaya_api")
    now = [0.0]
    provider = exporting(monkeypatch, collector.url, clock=lambda: now[0])

    def spans(status: int, count: int) -> None:
        collector.status = status
        for _ in range(count):
            emit(provider)

    spans(503, 3)
    (away,) = caplog.records
    assert away.getMessage() == "traces can't be exported and are dropped until they can be"
    assert vars(away)["reason"] == "503 Service Unavailable"
    spans(200, 2)
    (_, back) = caplog.records
    assert (back.getMessage(), vars(back)["spans_lost"]) == ("traces are exported again", 3)
    caplog.clear()
    spans(503, 2)
    spans(200, 1)
    assert not caplog.records, "one that comes and goes is told of once in five minutes"
    now[0] += SHORTEST
    spans(503, 2)
    assert len(caplog.records) == 1
    provider.shutdown()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        found: int = sock.getsockname()[1]
        return found


def test_a_collector_that_is_away_costs_a_bounded_queue_no_time_and_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    provider = configure_tracing("noctaya-test")
    assert provider is not None
    tracer = provider.get_tracer("test")
    began = time.monotonic()
    for _ in range(20_000):
        tracer.start_span("request").end()
    took = time.monotonic() - began
    assert took < 20, "spans wait for the network"
    deadline = time.monotonic() + 30
    while not caplog.records and time.monotonic() < deadline:
        time.sleep(0.02)
    gc.collect()
    kept = sum(type(each) is ReadableSpan for each in gc.get_objects())
    assert kept <= 2048 + 512, "the queue, and the batch that is being sent"
    lines = [line for line in caplog.records if line.levelno >= logging.INFO]
    assert [line.getMessage() for line in lines] == [
        "traces can't be exported and are dropped until they can be"
    ]
    assert "Connection refused" in vars(lines[0])["reason"]
    flush_tracing(provider)


def test_a_collector_that_hangs_does_not_hold_up_the_stop() -> None:
    release = threading.Event()

    class Hanging(SpanProcessor):
        def shutdown(self) -> None:
            release.wait(30)

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Hanging())
    began = time.monotonic()
    flush_tracing(provider, timeout=0.05)
    assert time.monotonic() - began < 10
    release.set()
