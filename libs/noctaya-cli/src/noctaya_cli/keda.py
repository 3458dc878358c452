"""The embedded KEDA: asks the ExternalScaler over gRPC and scales the replicas, as KEDA does in a cluster.

Two sources, as with KEDA's external-push trigger: StreamIsActive wakes at once (0 -> 1), and every
`POLLING_INTERVAL` IsActive and GetMetrics decide everything else. A scaler that can't be reached or says
UNAVAILABLE changes nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

import grpc

from noctaya_cli.backoff import ReconnectBackoff
from noctaya_cli.events import EventKind
from noctaya_cli.scaling import Scaling

POLLING_INTERVAL = 5.0
"""Seconds; what the operator writes into the ScaledObject (contracts 2.1)."""


class Scaler(Protocol):
    """The ExternalScaler of one service; noctaya_api's ExternalScalerClient is one."""

    def stream_is_active(self) -> AsyncGenerator[bool, None]:
        """Pushed states until the server ends the stream; raises grpc.aio.AioRpcError when it breaks."""

    async def is_active(self) -> bool:
        """Whether there is demand; raises grpc.aio.AioRpcError."""

    async def metric(self) -> float:
        """The demand; raises grpc.aio.AioRpcError."""


class Keda:
    """Runs the scaling of one service until cancelled.

    `scale(n)` is called whenever the wanted number of replicas may have changed. `emit(kind, details)`
    publishes.
    """

    def __init__(
        self,
        scaler: Scaler,
        *,
        scaling: Scaling,
        scale: Callable[[int], None],
        emit: Callable[..., None],
        polling_interval: float = POLLING_INTERVAL,
    ) -> None:
        self._scaler = scaler
        self._scaling = scaling
        self._scale = scale
        self._emit = emit
        self._interval = polling_interval
        self._connected: bool | None = None

    async def run(self) -> None:
        """Poll and listen for ever."""
        self._scale(self._scaling.replicas)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._poll())

    async def _listen(self) -> None:
        backoff = ReconnectBackoff()
        while True:
            try:
                async with aclosing(self._scaler.stream_is_active()) as states:
                    async for active in states:
                        self._set_connected(True)
                        self._pushed(active)
                delay = backoff.ended_cleanly()
                self._set_connected(False)
            except grpc.aio.AioRpcError as error:
                delay = backoff.failed()
                self._set_connected(False, reason=describe(error))
            await asyncio.sleep(delay)

    def _pushed(self, active: bool) -> None:
        before = self._scaling.replicas
        after = self._scaling.pushed(active, now=asyncio.get_running_loop().time())
        if before == 0 and after > 0:
            self._emit(EventKind.ACTIVATED, by="push")
        self._scale(after)

    async def _poll(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + self._interval
            try:
                active, demand = await self._scaler.is_active(), await self._scaler.metric()
            except grpc.aio.AioRpcError:
                self._scale(self._scaling.unavailable())
            else:
                before = self._scaling.replicas
                after = self._scaling.polled(active, demand=demand, now=clock())
                if before == 0 and after > 0:
                    self._emit(EventKind.ACTIVATED, by="poll")
                self._scale(after)
            await asyncio.sleep(due - clock())

    def _set_connected(self, connected: bool, *, reason: str = "") -> None:
        if connected is self._connected:
            return
        self._connected = connected
        if connected:
            self._emit(EventKind.KEDA_CONNECTED)
        elif reason:
            self._emit(EventKind.SCALER_LOST, reason=reason)
        else:
            self._emit(EventKind.KEDA_DISCONNECTED)


def describe(error: grpc.aio.AioRpcError) -> str:
    """One short line about a failed call."""
    return f"{error.code().name}: {error.details() or 'no details'}"
