"""HTTP/1.1 bytes as they go over a wire: heads and chunks; pure functions."""

from __future__ import annotations

import http
from collections.abc import Iterable, Sequence

from noctaya_gateway.client import Header

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %b" % (status.value, status.phrase.encode()) for status in http.HTTPStatus
}


def render_head(status: int, reason: bytes, lines: Iterable[bytes]) -> bytes:
    """A response head; `lines` are the headers, without line ends."""
    if reason or status not in _STATUS_LINES:
        top = b"HTTP/1.1 %d %b" % (status, reason)
    else:
        top = _STATUS_LINES[status]
    return b"\r\n".join((top, *lines, b"\r\n"))


def chunk(data: bytes, *, last: bool) -> bytes:
    """Body bytes, possibly none, as a chunk; with `last` the end of the body after it."""
    framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
    return framed + LAST_CHUNK if last else framed


def last_chunk(trailers: Sequence[Header]) -> bytes:
    """The end of a chunked body."""
    if not trailers:
        return LAST_CHUNK
    return b"0\r\n" + b"".join(b"%b: %b\r\n" % trailer for trailer in trailers) + b"\r\n"
