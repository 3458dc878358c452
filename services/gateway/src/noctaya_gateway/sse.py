"""Event streams where the gateway has something to say itself (behaviour G1, G2).

Two places need that. A held request may have been promised a stream (200) before the backend answered; then
whatever the backend answers has to fit into one. And a stream that breaks has to end with an error event
that parsers see as an event of its own, whatever was cut. Nothing here invents content: bytes of a
backend's stream pass as they are.
"""

from __future__ import annotations

import json

from noctaya_gateway.body import RequestBody
from noctaya_gateway.errors import BackendInterrupted, GatewayError
from noctaya_gateway.responses import DONE_EVENT, render_error_event, render_upstream_error_event

DOCUMENT_LIMIT = 8 * 1024 * 1024
"""Bytes of a backend's non-stream answer that are collected to be put into one event."""

PEEK_LIMIT = 8 * 1024 * 1024
"""Largest request body that is looked into (contracts 3.5)."""

_EVENT_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


def asks_for_stream(body: RequestBody) -> bool:
    """True when the whole body is here, of a size that is looked into, and asks for a stream."""
    return body.whole and 0 < body.held <= PEEK_LIMIT and wants_stream(body.content())


def wants_stream(body: bytes) -> bool:
    """True when `body` is a JSON object whose top-level `stream`, in any letter case, is true; the last one
    counts."""
    if not (b"stream" in body.lower() or b"\\u" in body):
        return False
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(document, dict):
        return False
    wanted = [value for key, value in document.items() if key.lower() == "stream"]
    return bool(wanted) and wanted[-1] is True


def closing_error(error: GatewayError, *, tail: bytes) -> bytes:
    """The events that end a broken stream; `tail` is the last of what the backend sent, so that a cut event
    is ended first. Comments of our own leave no event open."""
    ended = not tail or tail.endswith(_EVENT_ENDS)
    return (b"" if ended else b"\n\n") + render_error_event(error)


class Reframing:
    """Collects an answer that is no event stream, to be sent as one event on a stream already promised.

    `status` is the status the backend gave it.
    """

    __slots__ = ("_parts", "_size", "status")

    def __init__(self, status: int) -> None:
        self.status = status
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """Keep answer bytes, as far as the limit allows."""
        self._size += len(data)
        if self._size <= DOCUMENT_LIMIT:
            self._parts.append(data)

    def events(self) -> bytes:
        """The answer as an event, then `[DONE]`: an error with its status inside, or a document as it is."""
        body = b"".join(self._parts)
        if not 200 <= self.status < 300:
            return render_upstream_error_event(self.status, body)
        if self._size > DOCUMENT_LIMIT:
            too_large = BackendInterrupted("The model server answered a stream request with a huge document.")
            return render_error_event(too_large)
        lines = body.strip().splitlines() or [b""]
        return b"".join(b"data: %b\n" % line for line in lines) + b"\n" + DONE_EVENT
