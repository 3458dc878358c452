import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from noctaya_api.process.telemetry import configure_tracing, flush_tracing
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider


class Collector:
    """A collector's HTTP endpoint on loopback that keeps the paths and bodies it was sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
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
    assert configure_tracing("noctaya-test", environ={"OTEL_EXPORTER_OTLP_ENDPOINT": ""}) is None


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_spans_reach_the_configured_collector_with_the_services_name(
    variable: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = collector.url if variable == "OTEL_EXPORTER_OTLP_ENDPOINT" else f"{collector.url}/v1/traces"
    monkeypatch.setenv(variable, url)
    provider = configure_tracing("noctaya-test")
    assert provider is not None
    with provider.get_tracer("test").start_as_current_span("activation"):
        pass
    provider.shutdown()
    ((path, body),) = collector.received
    assert path == "/v1/traces"
    assert b"noctaya-test" in body
    assert b"activation" in body


def test_the_environments_service_name_wins(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named-by-hand")
    provider = configure_tracing("noctaya-test")
    assert provider is not None
    assert provider.resource.attributes["service.name"] == "named-by-hand"
    provider.shutdown()


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
