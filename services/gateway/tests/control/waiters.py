"""A held request for tests, and a line to hold it in."""

from __future__ import annotations

from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.errors import ActivationTimeout, GatewayError
from noctaya_gateway.pacing import Pacer
from noctaya_gateway.waiting import WaitingLine

from .clock import ManualTimers

A = Address("10.0.0.1", 8000)
B = Address("10.0.0.2", 8000)


class Held:
    """Records what the line says."""

    def __init__(self, name: object = "") -> None:
        self.name = name
        self.waited = -1.0
        self.beats = 0
        self.address: Address | None = None
        self.error: GatewayError | None = None
        self.calls: list[str] = []
        self.log: list[Held] | None = None

    def released(self, address: Address) -> None:
        self.calls.append("released")
        self.address = address
        if self.log is not None:
            self.log.append(self)

    def heartbeat(self) -> None:
        self.beats += 1

    def failed(self, error: GatewayError) -> None:
        self.calls.append("failed")
        self.error = error


class LineRig:
    def __init__(
        self,
        *,
        timeout: float = 100.0,
        interval: float = 10.0,
        rate: float = 0.0,
        addresses: tuple[Address, ...] = (A,),
    ) -> None:
        self.timers = ManualTimers()
        self.balancer = Balancer()
        self.balancer.set_addresses(addresses)
        self.line = WaitingLine(
            timers=self.timers,
            balancer=self.balancer,
            pacer=Pacer(rate),
            timeout=timeout,
            heartbeat_interval=interval,
            timeout_error=lambda waited: ActivationTimeout(waited=waited, retry_seconds=10),
        )
        self.balancer.subscribe(ready=self.line.pump)

    def up(self, address: Address = A) -> None:
        self.balancer.mark(address, ready=True)

    def down(self, address: Address = A) -> None:
        self.balancer.mark(address, ready=False)
