"""A collector of traces that keeps every byte it is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

# looptime's plugin asks for the current loop before every test; on Python 3.11 that makes one for good.
asyncio.set_event_loop(None)


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.authorizations: set[str] = set()
        received, authorizations = self.received, self.authorizations

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(self.rfile.read(int(self.headers["content-length"])))
                authorizations.add(self.headers.get("authorization", ""))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """The tests look at what was sent, not at that it was."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()
