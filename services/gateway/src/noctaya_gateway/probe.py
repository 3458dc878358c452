"""One readiness probe: connect, GET, look at the status, hang up.

Every probe makes a connection of its own, as the kubelet does. A connection that was once answered by
the wrong server, or that hangs, can therefore never be asked again (behaviour G12), and each probe
resolves and connects afresh. No proxy setting is honoured. A redirect is followed only to the same
host, by path. While a connect is not answered at all - the packet was dropped because the pod's network
is just coming up - the kernel would repeat it only after a second; so another connect is tried beside
it every `STAGGER` seconds, and whichever succeeds first is used.
"""

from __future__ import annotations

import asyncio
import enum
import ssl
from urllib.parse import urlsplit

from noctaya_gateway.balancer import Address

STAGGER = 0.1
"""Seconds after which an unanswered connect gets a rival."""
REDIRECTS = 3
HEAD_LIMIT = 64 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Outcome(enum.Enum):
    """What a probe found."""

    READY = "ready"
    NOT_READY = "not ready"
    """Answered, but not with 200 to 299."""
    REFUSED = "refused"
    """No connection."""
    BROKEN = "broken"
    """Connected, but not answered properly or in time."""


class HttpProbe:
    """Probes addresses with `GET path`; `host` is the Host header, `timeout` covers all of a probe, in
    seconds.
    """

    def __init__(
        self,
        *,
        path: str,
        host: str,
        timeout: float,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
    ) -> None:
        self._path = path
        self._host = host
        self._timeout = timeout
        self._tls = tls
        self._server_hostname = server_hostname

    async def __call__(self, address: Address) -> Outcome:
        """Probe `address` once; never raises for what a server does."""
        path = self._path
        outcome = Outcome.REFUSED
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(REDIRECTS + 1):
                    outcome = Outcome.REFUSED
                    streams = await self._connect(address)
                    outcome = Outcome.BROKEN
                    status, location = await self._ask(streams, path)
                    if 200 <= status < 300:
                        return Outcome.READY
                    if status not in (301, 302, 303, 307, 308) or not (onward := self._onward(location)):
                        return Outcome.NOT_READY
                    path = onward
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return outcome
        return Outcome.NOT_READY

    async def _connect(self, address: Address) -> Streams:
        attempts: set[asyncio.Task[Streams]] = set()
        try:
            while True:
                attempts.add(asyncio.create_task(self._open(address)))
                done, _ = await asyncio.wait(attempts, timeout=STAGGER, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    first = done.pop()
                    attempts.discard(first)
                    return first.result()
        finally:
            for attempt in attempts:
                attempt.add_done_callback(_hang_up)
                attempt.cancel()

    async def _open(self, address: Address) -> Streams:
        return await asyncio.open_connection(
            address.host,
            address.port,
            limit=HEAD_LIMIT,
            ssl=self._tls,
            server_hostname=(self._server_hostname or address.host) if self._tls else None,
        )

    async def _ask(self, streams: Streams, path: str) -> tuple[int, str]:
        reader, writer = streams
        try:
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\nUser-Agent: noctaya-gateway\r\n"
                "Accept: */*\r\nConnection: close\r\n\r\n".encode("latin-1")
            )
            head = await reader.readuntil(b"\r\n\r\n")
        finally:
            writer.transport.abort()
        lines = head.decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ", 2)[:2]
        if not version.startswith("HTTP/1."):
            raise ValueError(f"not an HTTP/1 answer: {version[:20]!r}")
        location = ""
        for line in lines[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "location":
                location = value.strip()
        return int(status), location

    def _onward(self, location: str) -> str:
        parts = urlsplit(location)
        if parts.netloc and parts.netloc.lower() != self._host.lower():
            return ""
        if not parts.path.startswith("/"):
            return ""
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _hang_up(attempt: asyncio.Task[Streams]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[1].transport.abort()
