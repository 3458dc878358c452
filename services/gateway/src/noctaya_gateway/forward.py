"""What changes in a head on its way through the gateway; pure functions.

Everything is passed on in order, duplicates included, but for the headers that belong to one connection only
(RFC 9110 section 7.6.1), credentials that were meant for the gateway, and the few that the gateway owns:
the request id, X-Forwarded-For, the framing of the body, and on event streams the two headers that keep
intermediaries from buffering.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from noctaya_gateway.body import RequestBody
from noctaya_gateway.client import BODILESS, UNKNOWN
from noctaya_gateway.request import HOP_BY_HOP, Request

Header = tuple[bytes, bytes]

_NEVER_NAMED = frozenset((b"close", b"keep-alive", b"", b"te", b"upgrade", b"host", b"content-length"))
"""Connection options that name no header to remove, or one that must not be removed on a client's word."""

_RESPONSE_NOTABLE = HOP_BY_HOP | {b"content-encoding", b"content-length", b"content-type", b"x-request-id"}

_STREAM_OWNED = frozenset((b"cache-control", b"x-accel-buffering"))

_STREAM_LINES = (b"cache-control: no-cache, no-transform", b"x-accel-buffering: no")


class MalformedResponseError(Exception):
    """The backend's head promises a framing that can't be passed on."""


def lines_of(headers: Iterable[Header]) -> list[bytes]:
    """Headers as lines without their ends."""
    return [b": ".join(header) for header in headers]


def without(lines: Iterable[bytes], names: Collection[bytes]) -> list[bytes]:
    """Lines but for those of the headers named, in lower case."""
    return [line for line in lines if line.partition(b":")[0].lower() not in names]


def body_length(request: Request, body: RequestBody) -> int:
    """Body bytes to announce to the backend: a number, UNKNOWN for chunks, or BODILESS."""
    if request.chunked:
        return body.received if body.whole else UNKNOWN
    return request.content_length if request.content_length >= 0 else BODILESS


def render_request_head(
    request: Request, *, length: int, traceparent: bytes = b"", identity_coding: bool = False
) -> bytes:
    """The head to send to the backend.

    Args:
        request: what the client sent.
        length: body bytes that will follow; UNKNOWN for chunks, BODILESS to announce nothing.
        traceparent: replaces the client's own when not empty.
        identity_coding: ask for an uncompressed answer, because its head is already on its way to the client.
    """
    passing = request.passing
    if request.connection or traceparent or identity_coding:
        names = {token for token in request.connection if token not in _NEVER_NAMED}
        if traceparent:
            names.add(b"traceparent")
        if identity_coding:
            names.add(b"accept-encoding")
        if names:
            passing = without(passing, names)
    out = [b"%b %b HTTP/1.1" % (request.method, request.target), *passing]
    if length == UNKNOWN:
        out.append(b"Transfer-Encoding: chunked")
    elif length >= 0 and request.content_length < 0:
        out.append(b"Content-Length: %d" % length)
    if request.trailers:
        out.append(b"TE: trailers")
    if request.upgrade:
        out += (b"Connection: Upgrade", b"Upgrade: " + request.upgrade)
    if traceparent:
        out.append(b"traceparent: " + traceparent)
    out.append(b"\r\n")
    return b"\r\n".join(out)


def filter_response_head(  # noqa: PLR0912  one pass over the headers
    status: int, headers: Sequence[Header], *, head_only: bool, owned: Collection[bytes] = ()
) -> tuple[list[bytes], int, bool, bool]:
    """What of the backend's head reaches the client; names in `owned` are dropped too.

    Returns:
        The headers as lines; the body's length as in `Client.send_head`; whether it is an event
        stream; whether it has a content coding.

    Raises:
        MalformedResponseError: a transfer coding other than a single chunked, or an unreadable length.
    """
    lines: list[bytes] = []
    length = UNKNOWN
    stream = coded = False
    named: tuple[bytes, ...] = ()
    for header in headers:
        lower = header[0].lower()
        if lower in _RESPONSE_NOTABLE:
            value = header[1]
            if lower == b"content-length":
                if not value.strip().isdigit():
                    raise MalformedResponseError("its Content-Length is not a number")
                length = int(value)
            elif lower == b"content-type":
                stream = value[:17].lower() == b"text/event-stream"
            elif lower == b"content-encoding":
                coded = value.strip().lower() not in (b"", b"identity")
            else:
                if lower == b"connection":
                    named += tuple(token.strip().lower() for token in value.split(b","))
                elif lower == b"transfer-encoding" and value.strip().lower() != b"chunked":
                    raise MalformedResponseError("its Transfer-Encoding is not a single chunked")
                continue
        lines.append(b": ".join(header))
    drop = {name for name in named if name not in _NEVER_NAMED} if named else set()
    if stream:
        drop |= _STREAM_OWNED
        if length >= 0 and not head_only:  # so that an error event can be added should the stream break
            drop.add(b"content-length")
            length = UNKNOWN
    if owned:
        drop.update(owned)
    if drop:
        lines = without(lines, drop)
    if stream:
        lines += _STREAM_LINES
    if head_only or status in (204, 304):
        length = BODILESS
    return lines, length, stream, coded
