"""One client request as the data path sees it: the raw head, and what the gateway must know about it.

Names, values, order, duplicates and the raw target are kept as they came, because they go to the backend
unchanged (behaviour G4). Everything else is found in one pass over the headers, which also
sorts out what goes on to the backend. What the parser lets
through but HTTP or safety does not allow ends up in `fault`, to be answered before anything else happens.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection

from noctaya_gateway.errors import BadRequest, GatewayError

Header = tuple[bytes, bytes]

SAFE_METHODS = frozenset((b"GET", b"HEAD", b"OPTIONS"))
"""Methods that never wake a model and never take a slot (behaviour G3)."""

_TOLD = frozenset((b"traceparent", b"x-noctaya-heartbeats", b"x-noctaya-progress"))
"""Headers that say something to the gateway and are passed on all the same."""

_OFF = frozenset((b"off", b"false", b"0", b"no"))
"""Values of our own request headers that mean no."""

_REQUEST_ID_LIMIT = 200
"""Longest client request id that is kept, in bytes; a longer one is replaced."""

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
"""Headers that belong to one connection only (RFC 9110 section 7.6.1)."""

NOTABLE = HOP_BY_HOP | {
    b"content-length",
    b"expect",
    b"host",
    b"traceparent",
    b"x-forwarded-for",
    b"x-noctaya-heartbeats",
    b"x-noctaya-progress",
    b"x-request-id",
}
"""Request headers that are not simply passed on; credential headers join them while authentication is on."""

_id_prefix = os.urandom(8).hex().encode()
_id_number = itertools.count(1)


def new_request_id() -> bytes:
    """An id that no other gateway process makes, at the price of one integer."""
    return b"%b-%x" % (_id_prefix, next(_id_number))


class Request:
    """A parsed request head.

    Attributes:
        method: upper case, as sent.
        target: raw path and query, never decoded; an absolute-form target is reduced to its path.
        headers: (name, value) in order; the case of names is the client's where the engine has it.
        passing: what of them goes to the backend, as pieces of lines: name, colon, value, line end, and so
        on. credentials: those that were meant for the gateway. http11: False for an HTTP/1.0 client, which
        can be sent neither chunks nor interim responses. keep_alive: the client wants to use the connection
        again. peer: the client's IP address as text, empty when unknown. content_length: bytes announced,
        or -1. chunked: the body comes in chunks of unknown total. request_id: the client's own, or a new
        one; `own_id` says which. connection: lower-case tokens of Connection, usually empty. upgrade: the
        protocol asked for by an Upgrade the engine wants to honour, else empty. traceparent: the client's
        own. heartbeats, progress: what the client asked for, `progress` None when it did not say. fault: why
        the request can't be served at all, or None.
    """

    __slots__ = (
        "chunked",
        "connection",
        "content_length",
        "credentials",
        "expects_continue",
        "fault",
        "headers",
        "heartbeats",
        "http11",
        "keep_alive",
        "method",
        "own_id",
        "passing",
        "peer",
        "progress",
        "request_id",
        "safe",
        "target",
        "traceparent",
        "trailers",
        "upgrade",
    )

    def __init__(
        self,
        method: bytes,
        target: bytes,
        headers: list[Header],
        *,
        notable: Collection[bytes],
        http11: bool = True,
        peer: bytes = b"",
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.http11 = http11
        self.keep_alive = http11
        self.safe = method in SAFE_METHODS
        self.content_length = -1
        self.chunked = self.expects_continue = self.trailers = False
        self.heartbeats = self.own_id = True
        self.connection: tuple[bytes, ...] = ()
        self.credentials: tuple[Header, ...] = ()
        self.upgrade = self.request_id = self.traceparent = b""
        self.progress: bool | None = None
        self.peer = peer
        self.fault: GatewayError | None = None
        passing: list[bytes] = []
        self.passing = passing
        hosts = 0
        forwarded = -1
        for header in headers:
            lower = header[0].lower()
            if lower in notable:
                if lower == b"host":
                    hosts += 1
                elif lower == b"content-length":
                    self._note_length(header[1].strip())
                elif lower == b"x-forwarded-for":
                    forwarded = len(passing)
                elif not self._note(lower, header[1]):
                    continue
            passing.append(b": ".join(header))
        if peer:
            if forwarded < 0:
                passing.append(b"X-Forwarded-For: " + peer)
            else:
                passing[forwarded] += b", " + peer
        if not self.request_id:
            self.request_id = new_request_id()
            passing.append(b"x-request-id: " + self.request_id)
        if hosts != 1 and (http11 or hosts > 1):
            self.refuse("The request needs exactly one Host header.")
        if target[:1] != b"/":
            self._reduce_target()

    @property
    def has_body(self) -> bool:
        """True when body bytes are to come."""
        return self.chunked or self.content_length > 0

    def refuse(self, why: str) -> None:
        """The request can't be served; what follows it on the connection is not to be trusted either."""
        self.fault = BadRequest(why, headers=((b"connection", b"close"),))

    def _note(self, name: bytes, value: bytes) -> bool:
        """Learn from a notable header; True when it is passed on."""
        if name not in NOTABLE:
            self.credentials += ((name, value),)
            return False
        if name == b"x-request-id":
            return self._note_request_id(value.strip())
        if name == b"expect":
            self.expects_continue = self.http11 and value.strip().lower() == b"100-continue"
            return not self.expects_continue
        if name in _TOLD:
            self._note_told(name, value)
            return True
        if name == b"connection":
            self.connection += tuple(token.strip().lower() for token in value.split(b","))
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked" or self.chunked or not self.http11:
                self.refuse("The only Transfer-Encoding understood is a single chunked.")
            self.chunked = True
        elif name == b"te":
            self.trailers = self.trailers or b"trailers" in value.lower()
        return False

    def _note_told(self, name: bytes, value: bytes) -> None:
        if name == b"traceparent":
            self.traceparent = value
        elif name == b"x-noctaya-progress":
            self.progress = value.strip().lower() not in _OFF
        else:
            self.heartbeats = value.strip().lower() not in _OFF

    def _note_length(self, value: bytes) -> None:
        if not value.isdigit() or self.content_length >= 0:
            self.refuse("The Content-Length is not one number.")
        else:
            self.content_length = int(value)

    def _note_request_id(self, value: bytes) -> bool:
        if self.request_id or not value or len(value) > _REQUEST_ID_LIMIT or not value.isascii():
            return False
        self.request_id = value
        self.own_id = False
        return True

    def _reduce_target(self) -> None:
        scheme, separator, rest = self.target.partition(b"://")
        if separator and scheme.lower() in (b"http", b"https"):
            end = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
            path = rest[end:]
            self.target = path if path[:1] == b"/" else b"/" + path
        elif not (self.target == b"*" and self.method == b"OPTIONS"):
            self.refuse("The request target must be a path.")
