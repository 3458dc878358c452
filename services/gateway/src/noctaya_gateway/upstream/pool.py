"""Connections to the backends: idle ones for reuse, new ones when there is none.

Per address a stack, not a queue: the connection used last is the one least likely to have been closed
meanwhile, and the surplus of a busy minute ages at the bottom until it is dropped. Connecting is the only
thing in the data path that takes a task; a connect nobody waits for any more is called off.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from bisect import bisect_right
from typing import Protocol

from noctaya_gateway.balancer import Address
from noctaya_gateway.upstream.connection import UpstreamConnection

MAX_IDLE = 256
"""Idle connections kept for one address."""

IDLE_SECONDS = 4.0
"""How long an idle connection is trusted: below the 5 s after which uvicorn, and so vLLM, closes its side
by default."""

CONNECT_TIMEOUT = 5.0
"""Seconds for name resolution, TCP and TLS together."""
REDIAL_SECONDS = 1.0
"""After so long a connect that is not answered is made anew. A Service that has just lost its last pod may
have bound it to that pod: whatever the kernel repeats of it goes there too, a new connect goes where the
Service leads by then."""

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
"""A backend whose node vanished is noticed after a minute, however long its answer may take."""


class ConnectWaiter(Protocol):
    """Who asked for a new connection; exactly one of the two is called, unless it was called off."""

    def connected(self, connection: UpstreamConnection) -> None:
        """The connection is there and is the waiter's."""

    def connect_failed(self, error: Exception) -> None:
        """It can't be had."""


class AddressLeft(ConnectionError):
    """The address is the backend's no more; nothing would have answered the connect."""


class Connecting:
    """A connection under way to `address`."""

    __slots__ = ("address", "left", "task")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.left = False
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Call it off; the waiter is not called."""
        self.left = False
        if self.task is not None:
            self.task.cancel()

    def address_left(self) -> None:
        """Call it off, since nobody is there any more; the waiter is told that it failed."""
        self.left = True
        if self.task is not None:
            self.task.cancel()


class UpstreamPool:
    """All connections of one gateway.

    Args:
        tls: context for an https backend, None for http.
        server_hostname: name to verify in the backend's certificate; the address's own host when None.
        max_idle: idle connections kept for one address.
        idle_seconds: age at which an idle connection is dropped.
        connect_timeout: seconds until a connect attempt fails.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        max_idle: int = MAX_IDLE,
        idle_seconds: float = IDLE_SECONDS,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._tls = tls
        self._server_hostname = server_hostname
        self._max_idle = max_idle
        self._idle_seconds = idle_seconds
        self._connect_timeout = connect_timeout
        self._idle: dict[Address, list[UpstreamConnection]] = {}
        self._open: set[UpstreamConnection] = set()
        self._dropped: set[Address] = set()
        self._connecting: set[Connecting] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def open_connections(self) -> int:
        """Connections open, busy and idle."""
        return len(self._open)

    @property
    def idle_connections(self) -> int:
        """Connections open and unused."""
        return sum(len(stack) for stack in self._idle.values())

    def checkout(self, address: Address) -> UpstreamConnection | None:
        """The idle connection to `address` that was used last, or None."""
        stack = self._idle.get(address)
        while stack:
            connection = stack.pop()
            if connection.usable:
                return connection
        return None

    def connect(self, address: Address, waiter: ConnectWaiter) -> Connecting:
        """Open a new connection for `waiter`."""
        connecting = Connecting(address)
        connecting.task = self._loop.create_task(self._connect(connecting, waiter))
        self._connecting.add(connecting)
        connecting.task.add_done_callback(lambda _: self._connecting.discard(connecting))
        return connecting

    def drop(self, address: Address) -> None:
        """The address left: its idle connections and connects go now, those in use when their exchange ends.

        The address of a Pod that is gone answers nothing at all: a connect would last until its timeout.
        """
        for connection in self._idle.pop(address, ()):
            connection.close()
        for connecting in self._connecting:
            if connecting.address == address:
                connecting.address_left()

    async def close(self) -> None:
        """Cut everything, also what is in use."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        connecting = list(self._connecting)
        for each in connecting:
            each.cancel()
        await asyncio.gather(*(each.task for each in connecting if each.task), return_exceptions=True)
        for connection in list(self._open):
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _connect(self, connecting: Connecting, waiter: ConnectWaiter) -> None:
        address = connecting.address
        try:
            try:
                connection = await self._dial(address, min(REDIAL_SECONDS, self._connect_timeout))
            except TimeoutError:
                connection = await self._dial(address, max(self._connect_timeout - REDIAL_SECONDS, 0.0))
        except (OSError, TimeoutError) as error:
            waiter.connect_failed(error)
            return
        except asyncio.CancelledError:
            if not connecting.left:
                raise
            waiter.connect_failed(AddressLeft(f"{address} left"))
            return
        self._open.add(connection)
        waiter.connected(connection)

    async def _dial(self, address: Address, within: float) -> UpstreamConnection:
        """One connect. Raises OSError, TimeoutError."""
        connection = UpstreamConnection(address, on_idle=self._on_idle, on_gone=self._on_gone)
        try:
            async with asyncio.timeout(within):
                transport, _ = await self._loop.create_connection(
                    lambda: connection,
                    address.host,
                    address.port,
                    ssl=self._tls,
                    server_hostname=(self._server_hostname or address.host) if self._tls else None,
                )
        except BaseException:
            connection.give_up()
            raise
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
        return connection

    def _on_idle(self, connection: UpstreamConnection) -> None:
        stack = self._idle.get(connection.address)
        if stack is None:
            stack = self._idle[connection.address] = []
        connection.idle_since = self._loop.time()
        stack.append(connection)
        if len(stack) > self._max_idle:
            stack.pop(0).close()
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._idle_seconds / 2, self._drop_aged)

    def _on_gone(self, connection: UpstreamConnection) -> None:
        self._open.discard(connection)
        stack = self._idle.get(connection.address)
        if stack:
            with contextlib.suppress(ValueError):
                stack.remove(connection)

    def _drop_aged(self) -> None:
        self._sweep = None
        limit = self._loop.time() - self._idle_seconds
        for address, stack in list(self._idle.items()):
            fresh = bisect_right(stack, limit, key=lambda connection: connection.idle_since)
            for connection in stack[:fresh]:
                connection.close()
            del stack[:fresh]
            if not stack:
                del self._idle[address]
        if self._idle:
            self._sweep = self._loop.call_later(self._idle_seconds / 2, self._drop_aged)
