"""The pure and small parts of the data path."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_gateway.body import BodyDeadline, BufferBudget, RequestBody
from noctaya_gateway.client import BODILESS, UNKNOWN
from noctaya_gateway.errors import BackendUnavailable, BufferFull, RequestTooLarge
from noctaya_gateway.forward import MalformedResponseError, filter_response_head, render_request_head
from noctaya_gateway.request import NOTABLE, Request
from noctaya_gateway.sse import PEEK_LIMIT, Reframing, asks_for_stream, closing_error, wants_stream
from noctaya_gateway.wire import chunk, last_chunk, render_head

from .stage import until


def request(*headers: tuple[bytes, bytes], method: bytes = b"POST", target: bytes = b"/v1/x") -> Request:
    notable = NOTABLE | {b"authorization"}
    return Request(method, target, [(b"Host", b"h"), *headers], notable=notable, peer=b"10.0.0.1")


def test_request_head_keeps_order_case_and_duplicates() -> None:
    made = request(
        (b"X-B", b"1"),
        (b"Connection", b"keep-alive, X-Hop"),
        (b"x-a", b" odd  value "),
        (b"X-Hop", b"gone"),
        (b"Keep-Alive", b"timeout=5"),
        (b"X-B", b"2"),
        (b"Authorization", b"Bearer k"),
        (b"X-Forwarded-For", b"1.1.1.1"),
        (b"X-Request-Id", b"mine"),
        (b"Content-Length", b"2"),
    )
    assert made.credentials == ((b"authorization", b"Bearer k"),)
    assert render_request_head(made, length=2) == (
        b"POST /v1/x HTTP/1.1\r\nHost: h\r\nX-B: 1\r\nx-a:  odd  value \r\nX-B: 2\r\n"
        b"X-Forwarded-For: 1.1.1.1, 10.0.0.1\r\nX-Request-Id: mine\r\nContent-Length: 2\r\n\r\n"
    )


def test_request_head_takes_the_trace_of_the_gateway() -> None:
    made = request((b"Traceparent", b"theirs"), (b"Accept-Encoding", b"gzip"), (b"x-request-id", b"i"))
    head = render_request_head(made, length=UNKNOWN, traceparent=b"ours", identity_coding=True)
    assert head == (
        b"POST /v1/x HTTP/1.1\r\nHost: h\r\nx-request-id: i\r\nX-Forwarded-For: 10.0.0.1\r\n"
        b"Transfer-Encoding: chunked\r\ntraceparent: ours\r\n\r\n"
    )


@pytest.mark.parametrize("value", [b"", b"  ", b"x" * 201, b"caf\xc3\xa9"])
def test_unfit_request_id_is_replaced(value: bytes) -> None:
    made = request((b"X-Request-Id", value))
    assert made.own_id
    assert render_request_head(made, length=BODILESS).lower().count(b"x-request-id: ") == 1


def test_absolute_target_is_reduced_to_its_path() -> None:
    assert request(target=b"http://h:80/a?b").target == b"/a?b"
    assert request(target=b"HTTP://h?b").target == b"/?b"
    assert request(target=b"https://h").target == b"/"
    assert request(target=b"*", method=b"OPTIONS").fault is None
    assert request(target=b"h:443").fault is not None


def test_response_head_loses_hop_by_hop_headers_only() -> None:
    headers = [
        (b"Date", b"d"),
        (b"Connection", b"close, X-Hop"),
        (b"X-Hop", b"1"),
        (b"Keep-Alive", b"1"),
        (b"Set-Cookie", b"a"),
        (b"Set-Cookie", b"b"),
        (b"Content-Length", b"3"),
        (b"X-Request-Id", b"theirs"),
    ]
    lines, length, stream, coded = filter_response_head(200, headers, head_only=False)
    assert lines == [b"Date: d", b"Set-Cookie: a", b"Set-Cookie: b", b"Content-Length: 3"]
    assert (length, stream, coded) == (3, False, False)
    assert filter_response_head(200, headers, head_only=True)[1] == BODILESS
    assert filter_response_head(304, headers, head_only=False)[1] == BODILESS


def test_event_stream_with_a_length_becomes_one_of_unknown_length() -> None:
    headers = [(b"content-type", b"Text/Event-Stream; charset=utf-8"), (b"content-length", b"9")]
    lines, length, stream, _ = filter_response_head(200, headers, head_only=False)
    assert (length, stream) == (UNKNOWN, True)
    assert lines == [
        b"content-type: Text/Event-Stream; charset=utf-8",
        b"cache-control: no-cache, no-transform",
        b"x-accel-buffering: no",
    ]


def test_response_with_an_unreadable_framing_is_malformed() -> None:
    with pytest.raises(MalformedResponseError):
        filter_response_head(200, [(b"Transfer-Encoding", b"gzip")], head_only=False)
    with pytest.raises(MalformedResponseError):
        filter_response_head(200, [(b"Content-Length", b"-1")], head_only=False)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"stream":true}', True),
        (b'{"Stream":true}', True),
        (b'{"str\\u0065am":true}', True),
        (b'{"stream":false,"STREAM":true}', True),
        (b'{"stream":true,"stream":false}', False),
        (b'{"stream":1}', False),
        (b'[{"stream":true}]', False),
        (b"stream", False),
        (b"[" * 100_000 + b'"stream"', False),
    ],
)
def test_stream_is_wanted_by_a_true_top_level_member(body: bytes, wanted: bool) -> None:
    assert wants_stream(body) is wanted


@given(st.binary(max_size=200))
def test_any_body_is_looked_into_without_harm(body: bytes) -> None:
    assert wants_stream(body) in (True, False)


def test_huge_body_is_not_looked_into() -> None:
    body = RequestBody(1 << 30, BufferBudget(1 << 30))
    body.arrived(b'{"stream":true}', whole=False, keep=True)
    assert not asks_for_stream(body)
    body.arrived(b" " * 100, whole=True, keep=True)
    assert asks_for_stream(body)
    body.arrived(b" " * PEEK_LIMIT, whole=True, keep=True)
    assert not asks_for_stream(body)


def test_cut_event_is_ended_before_the_error() -> None:
    error = BackendUnavailable("gone")
    assert closing_error(error, tail=b"data: 1\n\n").startswith(b"data: {")
    assert closing_error(error, tail=b"").startswith(b"data: {")
    assert closing_error(error, tail=b"data: hal").startswith(b"\n\ndata: {")


def test_huge_document_in_place_of_a_stream_is_an_error() -> None:
    reframing = Reframing(200)
    for _ in range(9):
        reframing.add(b"x" * 1024 * 1024)
    assert b'"error"' in reframing.events()


def test_body_gives_its_share_of_the_budget_back_once() -> None:
    budget = BufferBudget(10)
    body = RequestBody(100, budget)
    body.arrived(b"12345", whole=False, keep=True)
    with pytest.raises(BufferFull):
        body.arrived(b"123456", whole=False, keep=True)
    assert budget.used == 5
    assert not body.resendable
    body.release()
    body.release()
    assert budget.used == 0


def test_body_has_a_limit_held_or_not() -> None:
    body = RequestBody(10, BufferBudget(1000))
    with pytest.raises(RequestTooLarge):
        body.arrived(b"x" * 11, whole=True, keep=False)


@given(st.lists(st.binary(max_size=50)))
def test_body_is_resendable_when_whole_and_kept(parts: list[bytes]) -> None:
    budget = BufferBudget(1 << 20)
    body = RequestBody(1 << 20, budget)
    for part in parts:
        body.arrived(part, whole=False, keep=True)
    body.arrived(b"", whole=True, keep=True)
    assert body.content() == b"".join(parts)
    assert body.resendable
    assert budget.used == sum(map(len, parts))


async def test_body_deadline_moves_on_with_each_mebibyte() -> None:
    loop = asyncio.get_running_loop()
    expired: list[float] = []
    deadline = BodyDeadline(loop, seconds=0.2, on_expired=lambda: expired.append(loop.time()))
    begun = loop.time()
    await asyncio.sleep(0.1)
    deadline.progressed(1024 * 1024, whole=False)
    deadline.pause()
    await asyncio.sleep(0.3)
    assert not expired
    deadline.resume()
    await until(lambda: bool(expired))
    assert expired[0] - begun >= 0.55


def test_wire_forms() -> None:
    assert render_head(200, b"", [b"A: b"]) == b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
    assert render_head(299, b"Odd", []) == b"HTTP/1.1 299 Odd\r\n\r\n"
    assert chunk(b"abc", last=True) == b"3\r\nabc\r\n0\r\n\r\n"
    assert chunk(b"", last=False) == b""
    assert last_chunk([(b"X", b"1")]) == b"0\r\nX: 1\r\n\r\n"
