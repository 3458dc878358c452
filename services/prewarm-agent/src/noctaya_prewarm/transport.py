"""HTTP over blocking sockets: one connection a thread, one read of the socket a block.

A model is gigabytes; what an HTTP library adds to each block is what the transfer costs. The standard
library's client costs less than half of an asyncio client a byte (README, Threads).
Everything above one request and its redirects - ranges, retries, parallelism - is elsewhere.
"""

import http.client
import ssl
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from noctaya_prewarm.dial import Connection, Origin, connect, origin_of, shown
from noctaya_prewarm.errors import NetworkFault
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.watch import Exchange

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS: Final = 10
_KEPT: Final = 4
# What is left of a body is read, rather than the connection closed, up to so many bytes.
_SHORT: Final = 16 * 1024
_URL_CHARACTERS: Final = "%/:=&?~#+!$,;'@()*[]"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to ask for."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent to whatever server a redirect leads to."""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent to the URL's own server only."""
    method: str = "GET"
    """GET, HEAD, or POST of what may be sent twice."""
    content: bytes | None = field(default=None, repr=False)
    """Body; sent to the URL's own server only."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    url: str
    """Where it came from, after redirects."""
    redirected: bool
    body: http.client.HTTPResponse = field(repr=False)


class Client:
    """Connections of one thread, kept for reuse; close it at the end.

    Args:
        context: for TLS.
        timeout: seconds one read or write may block.
        agent: value of User-Agent.
    """

    def __init__(self, *, context: ssl.SSLContext, timeout: float, agent: str) -> None:
        self._context = context
        self._timeout = timeout
        self._agent = agent
        self._idle: dict[Origin, Connection] = {}
        self._busy: tuple[Origin, Connection, http.client.HTTPResponse | None] | None = None

    def get(self, request: Request, exchange: Exchange) -> Answer:
        """The first answer that is no redirect. `finish` or `drop` must be called before the next request.

        Raises:
            Retryable: no answer could be had.
            NetworkFault: the redirects make no sense, or a certificate isn't trusted.
            BadSettings: a proxy can't be used.
        """
        url, own = request.url, origin_of(request.url)
        for _ in range(_MAX_REDIRECTS):
            origin = origin_of(url)
            headers = dict(request.headers)
            if origin == own:
                headers.update(request.credentials)
            content = request.content if origin == own else None
            wanted = Request(url=url, headers=headers, method=request.method, content=content)
            response = self._ask(wanted, origin, exchange)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or location is None:
                return Answer(
                    status=response.status,
                    headers={name.lower(): value for name, value in response.headers.items()},
                    url=url,
                    redirected=url != request.url,
                    body=response,
                )
            self.finish()
            target = urllib.parse.quote(urllib.parse.urljoin(url, location), safe=_URL_CHARACTERS)
            if origin[0] == "https" and origin_of(target)[0] != "https":
                raise NetworkFault(f"{shown(url)} redirects from https to {shown(target)}, which is refused")
            url = target
        raise NetworkFault(f"{shown(request.url)} redirects more than {_MAX_REDIRECTS} times")

    def finish(self) -> None:
        """Done with the last answer: keep its connection if its body is (nearly) read, else close it."""
        if self._busy is None:
            return
        (origin, connection, response), self._busy = self._busy, None
        if response is not None and response.length is not None and response.length <= _SHORT:
            with suppress(OSError, http.client.HTTPException):
                response.read()
        if response is None or not response.isclosed() or connection.http.sock is None:
            connection.http.close()
            return
        while len(self._idle) >= _KEPT:
            self._idle.pop(next(iter(self._idle))).http.close()
        self._idle[origin] = connection

    def drop(self) -> None:
        """Done with the last answer, which failed: close its connection."""
        if self._busy is not None:
            self._busy[1].http.close()
            self._busy = None

    def close(self) -> None:
        """Close every connection."""
        self.drop()
        while self._idle:
            self._idle.popitem()[1].http.close()

    def _ask(self, request: Request, origin: Origin, exchange: Exchange) -> http.client.HTTPResponse:
        kept = self._idle.pop(origin, None)
        if kept is not None:
            # The server may have closed it while it was idle; what only reads may be sent again.
            self._busy = (origin, kept, None)
            try:
                return self._send(kept, request, exchange)
            except Retryable as failure:
                if exchange.stalled or isinstance(failure.__cause__, TimeoutError):
                    raise
        connection = connect(origin, context=self._context, timeout=self._timeout)
        self._busy = (origin, connection, None)
        return self._send(connection, request, exchange)

    def _send(self, connection: Connection, request: Request, exchange: Exchange) -> http.client.HTTPResponse:
        assert self._busy is not None
        exchange.attach(connection.http.sock)
        own = {"User-Agent": self._agent, "Accept": "*/*", "Accept-Encoding": "identity"}
        sent = {**own, **connection.headers(), **request.headers}
        try:
            with exchange.waiting():
                target = connection.target(request.url)
                connection.http.request(request.method, target, body=request.content, headers=sent)
                response = connection.http.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.drop()
            why = "no answer in time" if exchange.stalled or isinstance(error, TimeoutError) else str(error)
            raise Retryable(f"{shown(request.url)}: {why or type(error).__name__}") from error
        self._busy = (self._busy[0], connection, response)
        return response
