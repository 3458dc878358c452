"""Where the backend's addresses come from (behaviour G7): the URL itself, a static list, a headless
Service by DNS, or a file.

A headless name is resolved again every few seconds, ten times a second while an activation is pending, and
at once when a connect failed or is not answered, or when a ready address failed a probe: a pod that is
gone leaves the name at once, but connects to it would only time out. The Service's own address stays in
the balancer as a backup: while DNS still holds the pod back in a cache, the Service already reaches it. A
name that doesn't exist means "no pod"; a name server that doesn't answer means nothing, and the addresses
stay.

A file holds one `host:port` a line and is replaced as a whole by whoever runs the backends without a
cluster. It is looked at ten times a second. A missing file means "no backend"; one that can't be parsed
means nothing, and the addresses stay.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.search_domains import absolute

log = logging.getLogger(__name__)

RESOLVE_INTERVAL = 5.0
"""Seconds between look-ups, the TTL cluster DNS gives out."""
RESOLVE_FAST_INTERVAL = 0.1
"""The same while an activation is pending: the first byte shall follow readiness within 100 ms (G6)."""
FILE_INTERVAL = 0.1
"""Seconds between two looks at an endpoints file."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]


class Endpoints(NamedTuple):
    """Parsed NOCTAYA_BACKEND_ENDPOINTS; all empty means the backend URL's own address."""

    static: tuple[Address, ...] = ()
    dns: Address | None = None
    file: Path | None = None


def parse_endpoints(text: str) -> Endpoints:
    """Parse `host:port,host:port`, `dns://host:port` or `file:///path`; ValueError says what is wrong."""
    text = text.strip()
    if text.startswith("dns://"):
        return Endpoints(dns=_parse_address(text.removeprefix("dns://")))
    if text.startswith("file://"):
        parts = urlsplit(text)
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError(f"{text!r} is not file:// and an absolute path")
        return Endpoints(file=Path(unquote(parts.path)))
    return Endpoints(
        static=tuple(dict.fromkeys(map(_parse_address, filter(None, map(str.strip, text.split(","))))))
    )


def _parse_address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address needs brackets, as in [::1]:8000")
    if not separator or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not host:port with a port from 1 to 65535")
    return Address(host, int(port))


def read_endpoints(path: Path) -> tuple[Address, ...]:
    """The addresses in an endpoints file, empty when there is none; OSError or ValueError when it can't be
    used.
    """
    try:
        lines = path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return ()
    return tuple(dict.fromkeys(map(_parse_address, lines)))


async def resolve(host: str, port: int) -> Sequence[Address]:
    """Every A and AAAA address of `host`; empty when the name has none; OSError when DNS can't say."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            return ()
        raise
    except UnicodeError as error:
        raise OSError(f"{host!r} can't be a host name: {error}") from error
    return tuple(dict.fromkeys(Address(str(sockaddr[0]), port) for *_, sockaddr in found))


class Discovery:
    """Keeps the balancer's addresses up to date; `on_change` is called after every change.

    `search` is the machine's search list of domains, by which names of Services are made absolute.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        service: Address,
        balancer: Balancer,
        on_change: Callable[[], None],
        is_urgent: Callable[[], bool],
        search: Sequence[str] = (),
        resolver: Resolve = resolve,
    ) -> None:
        self._endpoints = endpoints
        self._service = _absolute(service, search)
        self._balancer = balancer
        self._on_change = on_change
        self._is_urgent = is_urgent
        self._name = _absolute(endpoints.dns, search) if endpoints.dns is not None else None
        self._resolve = resolver
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def start(self) -> None:
        """Set the first addresses and, for DNS or a file, begin to follow it."""
        if self._endpoints.file is not None:
            self._look_into(self._endpoints.file)
            self._task = asyncio.create_task(self._follow_file(self._endpoints.file), name="discovery")
            return
        if self._name is None:
            self._balancer.set_addresses(self._endpoints.static or (self._service,))
            self._on_change()
            return
        self._balancer.set_addresses((), backup=(self._service,))
        self._on_change()
        self._balancer.subscribe(suspect=lambda _: self.wake(), doubt=self.wake)
        self._task = asyncio.create_task(self._follow(self._name), name="discovery")

    def wake(self) -> None:
        """Look again at once: an activation began, or an address failed."""
        self._woken.set()

    async def close(self) -> None:
        """Stop resolving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _follow(self, name: Address) -> None:
        while True:
            await self._look_up(name)
            interval = RESOLVE_FAST_INTERVAL if self._is_urgent() else RESOLVE_INTERVAL
            self._woken.clear()
            try:
                async with asyncio.timeout(interval):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _follow_file(self, path: Path) -> None:
        while True:
            await asyncio.sleep(FILE_INTERVAL)
            self._look_into(path)

    def _look_into(self, path: Path) -> None:
        try:
            found = read_endpoints(path)
        except (OSError, ValueError) as error:
            if not self._failing:
                log.warning("endpoints file can't be used", extra={"path": str(path), "error": str(error)})
            self._failing = True
            return
        self._failing = False
        if frozenset(found) != frozenset(self._balancer.addresses):
            log.info("backend addresses changed", extra={"addresses": [str(address) for address in found]})
            self._balancer.set_addresses(found)
            self._on_change()

    async def _look_up(self, name: Address) -> None:
        try:
            found = await self._resolve(name.host, name.port)
        except OSError as error:
            if not self._failing:
                log.warning("backend name can't be resolved", extra={"host": name.host, "error": str(error)})
            self._failing = True
            return
        self._failing = False
        known = frozenset(self._balancer.addresses) - {self._service}
        if known != frozenset(found):
            log.info("backend addresses changed", extra={"addresses": [str(address) for address in found]})
            self._balancer.set_addresses(found, backup=(self._service,))
            if not found:
                # The last pod left. Until the Service notices it swallows connects, probes among them.
                self._balancer.mark(self._service, ready=False)
            self._on_change()


def _absolute(address: Address, search: Sequence[str]) -> Address:
    return address._replace(host=absolute(address.host, search))
