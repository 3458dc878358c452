"""A request's search for a connection when none lies ready: dial, look elsewhere, dial again, give up.

Nothing of a request is sent before there is a connection, so a failed connect is always safe to try
elsewhere. A connection that was reused and died before any response byte was most likely closed by the
backend while it lay idle; then the request may go out once more, on a new connection (behaviour G7).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from noctaya_gateway.balancer import Address
from noctaya_gateway.upstream.connection import UpstreamConnection
from noctaya_gateway.upstream.pool import Connecting

if TYPE_CHECKING:
    from noctaya_gateway.datapath import DataPath

CONNECT_ATTEMPTS = 3
"""How often one request tries to connect before it is refused, over all addresses."""
DOUBT_SECONDS = 0.25
"""An address that has answered no connect for so long is probed and looked up; the connect goes on."""
GIVE_UP_SECONDS = 1.0
"""An address that has answered neither the connect for so long nor the probe meanwhile is left: cluster DNS
may name a pod that is gone for seconds more, and who waits in line gets heartbeats."""


class Traveller(Protocol):
    """Who wants to reach a backend."""

    def forward(self, address: Address) -> None:
        """Try this address now."""

    def reached(self, connection: UpstreamConnection) -> None:
        """There it is."""

    def leave(self) -> Address | None:
        """Stop counting as load at the address tried; returns it."""

    def unreachable(self, error: Exception, *, final: bool) -> None:
        """No ready backend could be connected to; `final` when trying was in vain often enough."""


class Uplink:
    """See the module; made when a request first needs a new connection. `waits`: it may stand in line."""

    __slots__ = (
        "_attempts",
        "_connecting",
        "_doubt",
        "_failed_at",
        "_path",
        "_replayed",
        "_traveller",
        "_waits",
    )

    def __init__(self, path: DataPath, traveller: Traveller, *, waits: bool) -> None:
        self._path = path
        self._traveller = traveller
        self._waits = waits
        self._attempts = 0
        self._failed_at: tuple[Address, ...] = ()
        self._connecting: Connecting | None = None
        self._doubt: asyncio.TimerHandle | None = None
        self._replayed = False

    def dial(self, address: Address) -> None:
        """Open a new connection to `address`."""
        self._connecting = self._path.pool.connect(address, self)
        self._doubt = self._path.loop.call_later(DOUBT_SECONDS, self._doubted, address)

    def replay(self, address: Address) -> bool:
        """Dial again because a reused connection died; False when that was done before."""
        if self._replayed:
            return False
        self._replayed = True
        self._path.gate.metrics.replay()
        self.dial(address)
        return True

    def connected(self, connection: UpstreamConnection) -> None:
        """Called by the pool."""
        self._ended()
        self._traveller.reached(connection)

    def connect_failed(self, error: Exception) -> None:
        """Called by the pool: try another ready address if there is one."""
        self._ended()
        gate = self._path.gate
        gate.metrics.upstream_error("connect")
        self._attempts += 1
        address = self._traveller.leave()
        if address is not None:
            self._failed_at += (address,)
            gate.balancer.report_unreachable(address)
        final = self._attempts >= CONNECT_ATTEMPTS
        other = None if final else gate.balancer.pick(self._failed_at, trusted=True)
        if other is None:
            self._traveller.unreachable(error, final=final)
        else:
            self._traveller.forward(other)

    def cancel(self) -> None:
        """Nobody wants the connection any more."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._ended()

    def _doubted(self, address: Address) -> None:
        self._path.gate.balancer.report_unreachable(address)
        self._doubt = self._path.loop.call_later(GIVE_UP_SECONDS - DOUBT_SECONDS, self._give_up, address)

    def _give_up(self, address: Address) -> None:
        self._doubt = None
        balancer = self._path.gate.balancer
        if balancer.is_trusted(address) or self._connecting is None:
            return
        if self._waits or balancer.pick((*self._failed_at, address), trusted=True) is not None:
            self._connecting.address_left()

    def _ended(self) -> None:
        self._connecting = None
        if self._doubt is not None:
            self._doubt.cancel()
            self._doubt = None
