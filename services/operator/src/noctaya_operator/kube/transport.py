"""HTTP to the API server: the official client's session and TLS, with our timeouts, errors and renewal.

The generated API classes above it are not used: they parse into strict models and can't stream a watch
safely.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client.rest import RESTClientObject

from noctaya_operator.kube.access import Access
from noctaya_operator.kube.errors import ServerUnavailable, error_from_response
from noctaya_operator.kube.resources import Resource

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
"""Seconds for TCP and TLS."""
REQUEST_TIMEOUT = 30.0
"""Seconds for a whole request; an API server cuts its own at 60 s."""
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 15, 5, 3
"""TCP keepalive: a peer that vanished without a word is noticed after about 30 s."""
RENEW_INTERVAL = 5.0
"""Seconds between two credential renewals; a burst of 401 runs an exec plugin once."""


class RequestDone(NamedTuple):
    """One finished request, for counting."""

    verb: str
    """As RBAC names it: get list watch create update patch delete."""
    method: str
    resource: Resource
    host: str
    status: int
    """0 when there was no answer."""
    seconds: float
    """For a watch: until its head arrived."""
    date: str = ""
    """When the answer was made, by the server's clock: its header `Date`, empty when there is none."""


class Call(NamedTuple):
    """One request to make."""

    verb: str
    method: str
    resource: Resource
    path: str
    query: Mapping[str, str] = {}
    body: Any = None
    content_type: str = "application/json"


class Transport(Protocol):
    """Carries requests to an API server and brings answers back."""

    @property
    def server(self) -> str:
        """The API server's URL."""

    async def request(self, call: Call) -> Any:
        """The decoded JSON answer; `ApiError` when refused, failed or not reached."""

    def stream(self, call: Call, *, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterable[bytes]]:
        """The answer's body as it arrives; `idle_timeout` seconds of silence are an `ApiError`."""

    async def close(self) -> None:
        """Close every connection; streams in progress end with an error."""


class HttpTransport:
    """Requests to one API server over pooled connections; use inside one event loop.

    Args:
        access: address and credential.
        user_agent: what the server's audit log shows.
        observe: called once a request.
        request_timeout: seconds for a request that is not a watch.
    """

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str,
        observe: Callable[[RequestDone], None] | None = None,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self._access = access
        self._user_agent = user_agent
        self._observe = observe or (lambda done: None)
        self._request_timeout = request_timeout
        self._rest: Any = None
        self._configuration: Any = None
        self._retired: list[RESTClientObject] = []
        self._renewing = asyncio.Lock()
        self._renewed_at = float("-inf")

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self._access.configuration.host).rstrip("/")

    async def request(self, call: Call) -> Any:
        """The decoded JSON answer.

        Raises:
            ApiError: refused, failed or not reached.
        """
        limits = aiohttp.ClientTimeout(total=self._request_timeout, sock_connect=CONNECT_TIMEOUT)
        async with self._exchange(call, limits) as response:
            raw = await response.read()
        try:
            return json.loads(raw)
        except ValueError as error:
            message = f"{call.method} {call.path}: the answer is not JSON: {raw[:200]!r}"
            raise ServerUnavailable(0, "MalformedAnswer", message) from error

    @asynccontextmanager
    async def stream(self, call: Call, *, idle_timeout: float) -> AsyncIterator[AsyncIterable[bytes]]:
        """The answer's body as it arrives; silence of `idle_timeout` seconds is a failure.

        Raises:
            ApiError: refused, failed, cut or silent.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
        async with self._exchange(call, limits) as response:
            yield response.content.iter_any()

    async def close(self) -> None:
        """Close every connection; streams in progress end with an error."""
        current = [self._rest] if self._rest else []
        retired, self._retired, self._rest, self._configuration = self._retired, [], None, None
        for rest in [*current, *retired]:
            await _close(rest)

    @asynccontextmanager
    async def _exchange(
        self, call: Call, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            authorization = self._access.authorization()
            response = await self._send(call, limits)
            if response.status == 401 and await self._renew(authorization):
                response.close()
                response = await self._send(call, limits)
            try:
                if response.status >= 400:
                    raise error_from_response(
                        response.status,
                        await response.read(),
                        retry_after=_retry_after(response.headers.get("Retry-After")),
                    )
                yield response
            finally:
                response.close() if not response.content.at_eof() else response.release()
        except TimeoutError as error:
            message = f"{call.method} {call.path}: no answer in time"
            raise ServerUnavailable(0, "Timeout", message) from error
        except (aiohttp.ClientError, OSError) as error:
            message = f"{call.method} {call.path}: {str(error) or type(error).__name__}"
            raise ServerUnavailable(0, "ConnectionFailed", message) from error

    async def _send(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {
            "User-Agent": self._user_agent,
            "Accept": "application/json",
            "Content-Type": call.content_type,
        }
        authorization = self._access.authorization()
        if authorization:
            headers["Authorization"] = authorization
        url = self.server + call.path + (f"?{urlencode(call.query)}" if call.query else "")
        clock = asyncio.get_running_loop().time
        started, status, date = clock(), 0, ""
        try:
            answer = await self._client().request(
                call.method, url, headers=headers, body=call.body, _request_timeout=limits
            )
            response: aiohttp.ClientResponse = answer.response
            status, date = response.status, response.headers.get("Date", "")
        finally:
            host = urlsplit(self.server).netloc
            self._observe(
                RequestDone(call.verb, call.method, call.resource, host, status, clock() - started, date)
            )
        return response

    def _client(self) -> Any:
        configuration = self._access.configuration
        if self._rest is None or configuration is not self._configuration:
            if self._rest is not None:
                self._retired.append(self._rest)
            self._configuration = configuration
            self._rest = _Session(configuration)
        return self._rest

    async def _renew(self, refused: str | None) -> bool:
        clock = asyncio.get_running_loop().time
        async with self._renewing:
            if self._access.authorization() != refused:
                return True
            if clock() - self._renewed_at < RENEW_INTERVAL:
                return False
            renewed = await self._access.renew()
            self._renewed_at = clock()
            # Streams of the session before may go on; those of earlier ones have had their time.
            while len(self._retired) > 1:
                await _close(self._retired.pop(0))
            return renewed


class _Session(RESTClientObject):
    """The official session with TCP keepalive, without cookies and without ~/.netrc.

    Left to trust the environment, the session would read ~/.netrc and look for proxies again for every single
    request, in threads, and refuse to send our credential where that file has one for the host.
    """

    def _create_pool_manager(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.ssl_context, socket_factory=_kept_alive_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=environment_proxy(self.configuration.host),
        )


def environment_proxy(server: str) -> str | None:
    """The proxy that HTTPS_PROXY and NO_PROXY name for this URL; one in the kubeconfig goes before it."""
    parts = urlsplit(server)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _kept_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_COUNT),
    ):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header; the date form is not used by API servers and is ignored."""
    return float(value) if value and value.strip().isdigit() else None


async def _close(rest: RESTClientObject) -> None:
    try:
        await rest.close()
    except (aiohttp.ClientError, OSError) as error:
        log.debug("closing a session: %s", error)
