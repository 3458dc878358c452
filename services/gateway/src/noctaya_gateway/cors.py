"""Cross-origin access for browsers, when NOCTAYA_CORS_ORIGINS names who may (behaviour G3).

A preflight is answered here, before authentication: browsers send it without credentials. On real
responses, the gateway's own headers replace those of the backend, so that a browser never sees two.
With no origins configured nothing is added or removed and OPTIONS is a request like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from noctaya_gateway.responses import Header, Reply

RESPONSE_HEADERS = frozenset(
    {
        b"access-control-allow-origin",
        b"access-control-allow-credentials",
        b"access-control-allow-methods",
        b"access-control-allow-headers",
        b"access-control-expose-headers",
        b"access-control-max-age",
    }
)
"""Lower-case names the gateway answers for while CORS is on; the backend's are dropped then."""

EXPOSED = (
    b"x-request-id, x-noctaya-cold-start, x-noctaya-wait-seconds, x-noctaya-activation-id, retry-after, "
    b"x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests"
)
METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
MAX_AGE = b"600"
"""Seconds a browser may remember a preflight."""


class Cors:
    """The allowed origins; empty switches CORS off, `*` allows every origin."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._any = "*" in origins
        self._origins = frozenset(origin.encode("latin-1") for origin in origins)
        self.enabled = bool(origins)

    def preflight(self, method: bytes, headers: Sequence[Header]) -> Reply | None:
        """The answer to a preflight, or None when this is none or CORS is off.

        An origin that is not allowed gets an answer without permission, which the browser turns into
        its error.
        """
        if not self.enabled or method != b"OPTIONS":
            return None
        origin = requested_method = requested_headers = None
        for name, value in headers:
            lowered = name.lower()
            if lowered == b"origin":
                origin = value
            elif lowered == b"access-control-request-method":
                requested_method = value
            elif lowered == b"access-control-request-headers":
                requested_headers = value
        if origin is None or requested_method is None:
            return None
        granted: tuple[Header, ...] = ()
        if (allowed := self._allow(origin)) is not None:
            granted = (
                (b"access-control-allow-origin", allowed),
                (b"access-control-allow-methods", METHODS),
                (b"access-control-allow-headers", requested_headers or b"authorization, content-type"),
                (b"access-control-max-age", MAX_AGE),
            )
        vary = (b"vary", b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
        return Reply(204, (*granted, vary), b"")

    def headers(self, headers: Sequence[Header]) -> tuple[Header, ...]:
        """What to add to the response of a request with these headers; `()` without an allowed origin."""
        if not self.enabled:
            return ()
        for name, value in headers:
            if len(name) == 6 and name.lower() == b"origin":
                allowed = self._allow(value)
                if allowed is None:
                    return ((b"vary", b"Origin"),)
                return (
                    (b"access-control-allow-origin", allowed),
                    (b"access-control-expose-headers", EXPOSED),
                    (b"vary", b"Origin"),
                )
        return ()

    def _allow(self, origin: bytes) -> bytes | None:
        if self._any:
            return b"*"
        return origin if origin in self._origins else None
