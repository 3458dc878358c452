"""A model server without a model, in the standard library: starts at once.

    fake_model.py --port N [--delay S] [--exit-after S] [--exit-code N] [--ignore-term]
                  [--grandchild FILE] [--stream S]

/health answers 503 for `--delay` seconds, then 200. /v1/chat/completions answers the JSON of the request
back after the `seconds` it asks for, or with `"stream": true` one event now and the last one after those
(by default `--stream`) seconds. `--grandchild` starts a process in a session of its own that ignores
SIGTERM, and writes its pid to FILE.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "0")))
parser.add_argument("--delay", type=float, default=0.0)
parser.add_argument("--exit-after", type=float)
parser.add_argument("--exit-code", type=int, default=3)
parser.add_argument("--ignore-term", action="store_true")
parser.add_argument("--grandchild", type=Path)
parser.add_argument("--stream", type=float, default=0.0)
options = parser.parse_args()
READY_AT = time.monotonic() + options.delay


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        ready = time.monotonic() >= READY_AT
        if self.path == "/v1/models":
            self.reply(200, b'{"object":"list","data":[{"id":"fake","object":"model"}]}')
        else:
            self.reply(200 if ready else 503, b'{"pid":%d}' % os.getpid())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps({"pid": os.getpid(), "echo": body}).encode()
        if not body.get("stream"):
            time.sleep(body.get("seconds", 0))
            self.reply(200, answer)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b"data: " + answer + b"\n\n")
        self.wfile.flush()
        time.sleep(body.get("seconds", options.stream))
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def main() -> None:
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if options.grandchild:
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
        options.grandchild.write_text(str(child.pid))
    if options.exit_after is not None:
        threading.Timer(options.exit_after, lambda: os._exit(options.exit_code)).start()
    print(f"fake model on port {options.port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


main()
