"""The load against a server of our own: what each end of a request is called."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from noctaya_chaos.load import CUT, OK, UNREACHED, MixedLoad, of_stream
from noctaya_scenarios.chat import Client
from noctaya_scenarios.waiting import until

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


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, TOKEN + DONE, OK),
        (200, TOKEN, CUT),
        (200, b"", CUT),
        (200, TOKEN + ERROR + DONE, "error event backend_interrupted"),
        (503, b"{}", "status 503"),
    ],
)
def test_the_end_of_a_stream_has_a_name(status: int, body: bytes, result: str) -> None:
    with serving(status, body) as client:
        assert of_stream(client.stream().result(20)) == result


def test_the_load_asks_streams_and_wakes_only_what_sleeps() -> None:
    asleep: list[bool | None] = [None, True, False]
    looks: list[bool | None] = []

    def look() -> bool | None:
        looks.append(asleep[len(looks) % 3])
        return looks[-1]

    with serving(200, TOKEN + DONE) as client:
        with MixedLoad(client, client, asleep=look) as load:
            until(lambda: len(looks) >= 4, within=30, what="four looks")
        outcomes = load.since(0.0)
    assert {each.kind for each in outcomes} == {"json", "stream", "cold"}
    assert {each.result for each in outcomes} == {OK}
    assert sum(each.kind == "cold" for each in outcomes) == sum(look is True for look in looks)
    assert load.since(max(each.ended for each in outcomes) + 1) == []


def test_nobody_there_is_no_connection() -> None:
    with serving(200, b"") as client:
        pass
    with MixedLoad(client, client, asleep=lambda: True) as load:
        until(lambda: len({each.kind for each in load.since(0.0)}) == 3, within=30, what="one of each")
    assert {each.result for each in load.since(0.0)} == {UNREACHED}
