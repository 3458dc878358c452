"""The client sees what is there: whole streams, cut ones, silence, errors, who left."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from noctaya_scenarios.chat import Client
from noctaya_scenarios.waiting import NotYet, until

Stub = Callable[..., AbstractContextManager[Client]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"


@contextmanager
def saying(answer: bytes) -> Iterator[Client]:
    """A server that answers one request with these bytes and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Client("127.0.0.1", server.getsockname()[1])
        thread.join(10)


def chunked(*parts: bytes, end: bool = True) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if end else b"")


EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


def test_a_stream_of_the_stub_is_whole_and_counted(stub: Stub) -> None:
    with stub() as client:
        seen = client.stream(tokens=7).result(20)
    assert seen.whole
    assert (seen.tokens, seen.heartbeats, seen.body) == (7, 0, "")
    assert seen.text.startswith("token0 token1")
    assert seen.sent_at < seen.head_at <= seen.first_token_at < seen.ended_at
    assert seen.headers["x-stub-pod"] == "pod-a"


def test_a_stream_that_the_stub_cuts_is_not_whole(stub: Stub) -> None:
    with stub() as client:
        client.post("/control", {"cutAfter": 2})
        seen = client.stream(tokens=7).result(20)
    assert not seen.whole
    assert (seen.tokens, seen.done) == (2, False)
    assert "IncompleteRead" in seen.failure or "Reset" in seen.failure


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (chunked(EVENT, DONE), True),
        (chunked(b": heartbeat\n", EVENT, DONE), True),
        (chunked(EVENT[:10], EVENT[10:], DONE), True),
        (chunked(EVENT), False),
        (chunked(EVENT, DONE, end=False), False),
        (chunked(EVENT, b'data: {"error":{"code":"backend_interrupted"}}\n\n', DONE), False),
        (chunked(DONE), False),
        (HEAD.replace(b"200 OK", b"503 No") + b"\r\n", False),
    ],
)
def test_whole_means_tokens_then_done_then_the_end(answer: bytes, whole: bool) -> None:
    with saying(answer) as client:
        seen = client.stream().result(20)
    assert seen.whole is whole, seen


def test_heartbeats_and_errors_are_told_apart() -> None:
    error = b'data: {"error":{"code":"activation_failed","message":"m"}}\n\n'
    with saying(chunked(b": heartbeat\n", b": heartbeat\n", error, DONE)) as client:
        stream = client.stream()
        stream.await_heartbeats(2)
        seen = stream.result(20)
    assert [each["code"] for each in seen.errors] == ["activation_failed"]


def test_waiting_for_tokens_that_do_not_come_tells_what_came() -> None:
    with saying(chunked(b": heartbeat\n", DONE)) as client, pytest.raises(NotYet, match="heartbeats=1"):
        client.stream().await_tokens(within=0.5)


def test_a_client_that_leaves_is_gone_for_the_server(stub: Stub) -> None:
    with stub(STUB_TOKEN_COUNT="100000") as client:
        stream = client.stream(tokens=10_000)
        stream.await_tokens(2)
        stream.leave()
        assert not stream.running
        until(
            lambda: client.post("/control", {}).json()["running"] == 0, within=10, what="the stub noticed it"
        )
        assert client.post("/control", {}).json()["broken"] == 1


def test_an_answer_carries_its_code_and_its_pod(stub: Stub) -> None:
    body = b'{"error":{"code":"queue_full"}}'
    head = b"HTTP/1.1 429 Too Many\r\ncontent-length: %d\r\nretry-after: 5\r\n\r\n" % len(body)
    with saying(head + body) as client:
        refused = client.with_key("k").ask()
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "queue_full", "5")
    with stub() as client:
        begun = time.monotonic()
        answer = client.ask(tokens=3)
        assert (answer.status, answer.code, answer.pod) == (200, "", "pod-a")
        assert 0.02 < answer.seconds <= time.monotonic() - begun
