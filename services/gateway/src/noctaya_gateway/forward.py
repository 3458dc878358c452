"""What changes in a head on its way through the gateway; pure functions.

Everything is passed on in order, duplicates included, but for the headers that belong to one connection only
(RFC 9110 section 7.6.1), credentials that were meant for the gateway, and the few that the gateway owns:
the request id, X-Forwarded-For, the framing of the body, and on event streams the two headers that keep
intermediaries from buffering.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from noctaya_gateway.client import BODILESS, UNKNOWN
from noctaya_gateway.request import Request

Header = tuple[bytes, bytes]

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)

REQUEST_NOTABLE = HOP_BY_HOP | {b"content-length", b"expect", b"x-forwarded-for", b"x-request-id"}
"""Request headers that are not simply passed on; credential headers join them while authentication is on."""

_NEVER_NAMED = frozenset((b"close", b"keep-alive", b"", b"te", b"upgrade", b"host", b"content-length"))
"""Connection options that name no header to remove, or one that must not be removed on a client's word."""

_RESPONSE_NOTABLE = HOP_BY_HOP | {b"content-encoding", b"content-length", b"content-type", b"x-request-id"}

_STREAM_OWNED = frozenset((b"cache-control", b"x-accel-buffering"))

_STREAM_HEADERS: tuple[Header, ...] = (
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class MalformedResponseError(Exception):
    """The backend's head promises a framing that can't be passed on."""


def render_request_head(  # noqa: PLR0912  one pass over the headers
    request: Request,
    *,
    notable: Collection[bytes],
    length: int,
    traceparent: bytes = b"",
    identity_coding: bool = False,
) -> bytes:
    """The head to send to the backend.

    Args:
        request: what the client sent.
        notable: REQUEST_NOTABLE and whatever else must not pass.
        length: body bytes that will follow; UNKNOWN for chunks, BODILESS to announce nothing.
        traceparent: replaces the client's own when not empty.
        identity_coding: ask for an uncompressed answer, because its head is already on its way to the client.
    """
    if request.connection or traceparent or identity_coding:
        notable = set(notable).union(token for token in request.connection if token not in _NEVER_NAMED)
        if traceparent:
            notable.add(b"traceparent")
        if identity_coding:
            notable.add(b"accept-encoding")
    out = [request.method, b" ", request.target, b" HTTP/1.1\r\n"]
    forwarded = identified = announced = False
    for name, value in request.headers:
        lower = name.lower()
        if lower not in notable:
            out += (name, b": ", value, b"\r\n")
        elif lower == b"content-length":
            if length >= 0:
                announced = True
                out += (name, b": ", value, b"\r\n")
        elif lower == b"x-forwarded-for":
            if not forwarded:
                forwarded = True
                out += (name, b": ", _forwarded_for(request), b"\r\n")
        elif lower == b"x-request-id":
            if not identified and not request.own_id:
                identified = True
                out += (name, b": ", request.request_id, b"\r\n")
        elif lower == b"expect" and not request.expects_continue:
            out += (name, b": ", value, b"\r\n")
    if not identified:
        out += (b"x-request-id: ", request.request_id, b"\r\n")
    if not forwarded and request.peer:
        out += (b"X-Forwarded-For: ", request.peer, b"\r\n")
    if length == UNKNOWN:
        out.append(b"Transfer-Encoding: chunked\r\n")
    elif length >= 0 and not announced:
        out.append(b"Content-Length: %d\r\n" % length)
    if request.trailers:
        out.append(b"TE: trailers\r\n")
    if request.upgrade:
        out += (b"Connection: Upgrade\r\nUpgrade: ", request.upgrade, b"\r\n")
    if traceparent:
        out += (b"traceparent: ", traceparent, b"\r\n")
    out.append(b"\r\n")
    return b"".join(out)


def _forwarded_for(request: Request) -> bytes:
    hops = [value for name, value in request.headers if name.lower() == b"x-forwarded-for" and value.strip()]
    if request.peer:
        hops.append(request.peer)
    return b", ".join(hops)


def filter_response_head(  # noqa: PLR0912  one pass over the headers
    status: int, headers: Sequence[Header], *, head_only: bool, owned: Collection[bytes] = ()
) -> tuple[list[Header], int, bool, bool]:
    """What of the backend's head reaches the client; names in `owned` are dropped too.

    Returns:
        The headers; the body's length as in `Client.send_head`; whether it is an event stream; whether it has
        a content coding.

    Raises:
        MalformedResponseError: a transfer coding other than a single chunked, or an unreadable length.
    """
    kept: list[Header] = []
    length = UNKNOWN
    stream = coded = False
    named: tuple[bytes, ...] = ()
    for header in headers:
        lower = header[0].lower()
        if lower not in _RESPONSE_NOTABLE:
            kept.append(header)
        elif lower == b"content-length":
            value = header[1].strip()
            if not value.isdigit():
                raise MalformedResponseError("its Content-Length is not a number")
            length = int(value)
            kept.append(header)
        elif lower == b"content-type":
            stream = header[1][:17].lower() == b"text/event-stream"
            kept.append(header)
        elif lower == b"content-encoding":
            coded = header[1].strip().lower() not in (b"", b"identity")
            kept.append(header)
        elif lower == b"transfer-encoding":
            if header[1].strip().lower() != b"chunked":
                raise MalformedResponseError("its Transfer-Encoding is not a single chunked")
        elif lower == b"connection":
            named += tuple(token.strip().lower() for token in header[1].split(b","))
    drop = {name for name in named if name not in _NEVER_NAMED} if named else set()
    if stream:
        drop |= _STREAM_OWNED
        if length >= 0 and not head_only:  # so that an error event can be added should the stream break
            drop.add(b"content-length")
            length = UNKNOWN
    if owned:
        drop.update(owned)
    if drop:
        kept = [header for header in kept if header[0].lower() not in drop]
    if stream:
        kept += _STREAM_HEADERS
    if head_only or status in (204, 304):
        length = BODILESS
    return kept, length, stream, coded
