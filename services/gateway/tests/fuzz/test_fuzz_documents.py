"""G2, G9: what a backend or a file says never breaks what a client gets to read."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from hypothesis import example, given
from hypothesis import strategies as st
from noctaya_gateway.errors import ActivationFailed
from noctaya_gateway.keys import MalformedKeys, parse_keys
from noctaya_gateway.prewarming import LIMIT, parse_notice
from noctaya_gateway.responses import (
    DONE_EVENT,
    render_error,
    render_error_event,
    render_upstream_error_event,
)
from noctaya_gateway.sse import Reframing, wants_stream

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
NAMES = st.sampled_from(
    ["error", "message", "detail", "code", "type", "stream", "Stream", "readyAt", "status"]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXT, inner, max_size=5),
    max_leaves=12,
)
BODIES = st.binary(max_size=200) | JSON.map(json.dumps).map(str.encode)
DEEP = b'{"error":' * 100_000


def no_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def strict(data: bytes) -> Any:
    """What a strict client reads; `1e999` becomes infinite in every reader."""
    return json.loads(data.decode("utf-8", "strict"), parse_constant=no_constant)


@given(status=st.integers(300, 599), body=BODIES)
@example(status=500, body=b'{"error":{"message":"\\ud800"}}')
@example(status=500, body=b'{"error":{"message":"x","code":NaN}}')
@example(status=500, body=b'{"error":{"message":"x","code":1e999}}')
@example(status=400, body=DEEP)
@example(status=400, body=b'{"error":' + b"1" * 5000 + b"}")
def test_fuzz_an_upstream_error_becomes_one_event_that_every_client_can_read(
    status: int, body: bytes
) -> None:
    events = render_upstream_error_event(status, body)
    assert events.endswith(b"\n\n" + DONE_EVENT)
    event = events.removesuffix(DONE_EVENT)
    assert event.count(b"\n") == 2
    error = strict(event.removeprefix(b"data: "))["error"]
    assert error["status"] == status
    assert error["message"]


@given(status=st.sampled_from([200, 299, 300, 404, 500]), parts=st.lists(BODIES, max_size=4))
def test_fuzz_a_document_put_into_a_stream_keeps_the_form_of_one(status: int, parts: list[bytes]) -> None:
    reframing = Reframing(status)
    for part in parts:
        reframing.add(part)
    events = reframing.events()
    assert events.endswith(b"\n\n" + DONE_EVENT)
    lines = events.removesuffix(DONE_EVENT).removesuffix(b"\n\n").split(b"\n")
    assert all(line.startswith(b"data: ") for line in lines)


@given(body=BODIES)
@example(body=b'"stream"' + b"[" * 100_000)
@example(body=b'{"stream":true,"a":' + b"1" * 5000 + b"}")
def test_fuzz_a_request_body_asks_for_a_stream_or_does_not(body: bytes) -> None:
    assert wants_stream(body) in {True, False}


@given(text=TEXT | JSON.map(json.dumps))
@example(text="[" * 100_000)
@example(text='{"message": "\\ud800", "readyAt": "0001-01-01T00:00:00"}')
def test_fuzz_a_notice_can_be_told_to_a_client(text: str) -> None:
    message, expected = parse_notice(text)[:2]
    assert len(message) <= LIMIT
    assert expected is None or isinstance(expected, float)
    error = ActivationFailed(message, retry_seconds=5)
    assert strict(render_error(error).body)["error"]["code"] == "activation_failed"
    assert strict(render_error_event(error).removesuffix(DONE_EVENT).removeprefix(b"data: "))


@given(
    secret=st.from_regex(rb"[!-~]{8,20}", fullmatch=True),
    rest=st.binary(max_size=30)
    | st.from_regex(rb"( (name|rpm|concurrent)=[ -~]{0,12}){0,4}", fullmatch=True),
)
@example(secret=b"s" * 12, rest=b" rpm=" + b"9" * 5000)
@example(secret=b"s" * 12, rest=" rpm=\u0663".encode())
def test_fuzz_a_line_of_the_key_file_is_a_key_or_an_error_that_does_not_tell_it(
    secret: bytes, rest: bytes
) -> None:
    try:
        (key,) = parse_keys((secret + b" " + rest.replace(b"\n", b" "),))
    except MalformedKeys as error:
        assert secret.decode() not in str(error)
    else:
        assert secret.decode() not in repr(key)
