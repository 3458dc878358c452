"""A server that answers every request with the same bytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from noctaya_scenarios.chat import Client

TOKEN = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error": {"code": "backend_interrupted"}}\n\n'


@contextmanager
def serving(status: int, body: bytes) -> Iterator[Client]:
    """A server that answers everything with the same; a length that is not kept cuts the stream."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Client("127.0.0.1", server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
