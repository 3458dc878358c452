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
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
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
    return _event({"error": _upstream_error(status, body)}) + DONE_EVENT


def _upstream_error(status: int, body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {
        "message": "",
        "type": INVALID_REQUEST if status < 500 else SERVER,
        "param": None,
        "code": None,
    }
    text = body[:UPSTREAM_BODY_LIMIT].decode("utf-8", "replace").strip()
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
        found["message"] = text or f"The model server answered with status {status}."
    found["status"] = status
    return found


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
