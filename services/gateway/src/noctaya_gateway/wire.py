"""HTTP/1.1 response bytes; pure functions of the protocol engine."""

from __future__ import annotations

import http
from collections.abc import Iterable, Sequence

from noctaya_gateway.client import Header

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS_LINES = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in http.HTTPStatus
}


def render_head(status: int, reason: bytes, headers: Sequence[Header], framing: Iterable[bytes]) -> bytes:
    """A response head; `framing` are complete header lines that go last."""
    if reason or status not in _STATUS_LINES:
        out = [b"HTTP/1.1 %d %b\r\n" % (status, reason)]
    else:
        out = [_STATUS_LINES[status]]
    for name, value in headers:
        out += (name, b": ", value, b"\r\n")
    out += framing
    out.append(b"\r\n")
    return b"".join(out)


def last_chunk(trailers: Sequence[Header]) -> bytes:
    """The end of a chunked body."""
    if not trailers:
        return LAST_CHUNK
    return b"0\r\n" + b"".join(b"%b: %b\r\n" % trailer for trailer in trailers) + b"\r\n"
