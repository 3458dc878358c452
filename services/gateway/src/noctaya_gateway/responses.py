"""How the gateway's own answers look on the wire; pure functions only.

Errors follow the OpenAI shape `{"error": {"message", "type", "param", "code"}}` in both forms: as a
whole response before anything was sent, and as the last event of a stream that is already committed
(behaviour G2). An event is always followed by `data: [DONE]`, so that SDKs end instead of waiting for
more; no `finish_reason` is ever made up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from noctaya_gateway.errors import INVALID_REQUEST, SERVER, GatewayError

Header = tuple[bytes, bytes]

HEARTBEAT = b": heartbeat\n"
"""One comment line and no blank line after it: a blank line would end an event that never was (behaviour
G1).
"""

DONE_EVENT = b"data: [DONE]\n\n"

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
"""Head of a stream the gateway commits to before the backend answered."""

UPSTREAM_BODY_LIMIT = 64 * 1024
"""Bytes of an upstream error body that are looked at when it is re-framed as an event."""


class Reply(NamedTuple):
    """A complete response of the gateway; `headers` include content-type and content-length."""

    status: int
    headers: tuple[Header, ...]
    body: bytes


def json_reply(status: int, document: Any, *, headers: Sequence[Header] = ()) -> Reply:
    """A JSON response with its length."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    head = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers)
    return Reply(status, head, body)


def error_document(error: GatewayError) -> dict[str, Any]:
    """The OpenAI error object of `error`."""
    return {"error": {"message": error.message, "type": error.type, "param": None, "code": error.code}}


def render_error(error: GatewayError, request_id: bytes | None = None) -> Reply:
    """The whole response for `error`, with the request id when there is one."""
    identity = ((b"x-request-id", request_id),) if request_id else ()
    return json_reply(error.status, error_document(error), headers=(*error.headers, *identity))


def render_error_event(error: GatewayError) -> bytes:
    """The closing events for `error` on a committed stream; the HTTP status goes inside."""
    document = error_document(error)
    document["error"]["status"] = error.status
    return _event(document) + DONE_EVENT


def render_upstream_error_event(status: int, body: bytes) -> bytes:
    """A backend's non-2xx answer, re-framed for a stream whose 200 is already sent.

    A JSON error of the backend keeps its members; any other body becomes the message. The status is put
    inside.
    """
    try:
        event = _event({"error": _upstream_error(status, body)})
    except (ValueError, RecursionError):  # `NaN`, `1e999`: Python's reader takes what no client would
        event = _event({"error": _error_of_text(status, _text_of(body))})
    return event + DONE_EVENT


def _error_of_text(status: int, text: str) -> dict[str, Any]:
    kind = INVALID_REQUEST if status < 500 else SERVER
    message = text or f"The model server answered with status {status}."
    return {"message": message, "type": kind, "param": None, "code": None, "status": status}


def _text_of(body: bytes) -> str:
    return body[:UPSTREAM_BODY_LIMIT].decode("utf-8", "replace").strip()


def _upstream_error(status: int, body: bytes) -> dict[str, Any]:
    found = {**_error_of_text(status, ""), "message": ""}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        inner = document.get("error", document)
        if isinstance(inner, dict):
            found.update(inner)
        elif isinstance(inner, str):
            found["message"] = inner
        if not found["message"] and isinstance(document.get("detail"), str):
            found["message"] = document["detail"]
    if not found["message"]:
        found["message"] = _error_of_text(status, _text_of(body))["message"]
    found["status"] = status
    return found


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + _json(document) + b"\n\n"


def _json(document: Any) -> bytes:
    """Strict JSON: a lone surrogate, which a backend may have escaped, becomes a question mark. Raises
    ValueError for numbers that JSON does not have."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
