"""The ear of a trace collector: takes OTLP over HTTP as a collector does and gives back what it was sent.

Its text runs in a Pod of the cluster, so it needs nothing but Python; whoever reads it decodes the messages.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

PORT: Final = 4318
PROTOBUF: Final = "application/x-protobuf"
KEPT: Final = 4096
"""Requests that are kept; the oldest go first."""


class Receiver(BaseHTTPRequestHandler):
    """`POST /v1/traces` as OTLP has it; `GET /received` gives all of it; `GET /healthz` is 200."""

    protocol_version = "HTTP/1.1"
    lock: ClassVar = threading.Lock()
    received: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        """Take a message."""
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path != "/v1/traces":
            self._answer(404, b"no such signal")
        elif self.headers.get_content_type() != PROTOBUF:
            self._answer(415, b"only protobuf")
        else:
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            with self.lock:
                self.received.append(
                    {
                        "authorization": self.headers.get("authorization", ""),
                        "message": base64.b64encode(body).decode(),
                    }
                )
                del self.received[:-KEPT]
            self._answer(200, b"", kind=PROTOBUF)  # an ExportTraceServiceResponse that says nothing

    def do_GET(self) -> None:
        """Give what was taken."""
        if self.path == "/received":
            with self.lock:
                found = json.dumps(self.received)
            self._answer(200, found.encode(), kind="application/json")
        else:
            self._answer(200 if self.path == "/healthz" else 404, b"")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: everything is told by /received."""

    def _answer(self, status: int, body: bytes, *, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(port: int = PORT) -> None:
    """Serve on every address until killed."""
    ThreadingHTTPServer(("0.0.0.0", port), Receiver).serve_forever()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
