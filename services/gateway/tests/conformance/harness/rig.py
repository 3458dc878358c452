"""A gateway with its backend, new for one test or lent from test to test.

Starting a process costs most of a second on a busy core. Tests that leave no trace but counters share one
gateway per environment; `Rigs` brings a shared one back to the state its next user asks for, and refuses to
lend one that did not come back to rest.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from .backend import FakeBackend
from .process import GatewayProcess, eventually
from .wire import SOON


@dataclass
class Rig:
    """A gateway in front of one scripted backend."""

    gateway: GatewayProcess
    backend: FakeBackend

    async def set_healthy(self, healthy: bool, *, within: float = SOON) -> None:
        """Change the backend's health and wait until the gateway knows."""
        self.backend.set_healthy(healthy)

        async def known() -> bool:
            return await self.gateway.backend_ready() is healthy

        await eventually(known, within=within)

    async def at_rest(self) -> None:
        """Wait until no slot is taken and no demand is left."""

        async def rest() -> bool:
            return await self.gateway.admitted() == 0 and not self.backend.open_calls

        await eventually(rest)

    async def stop(self) -> None:
        await self.gateway.stop()
        await self.backend.stop()


async def start_rig(
    engine: str, env: Mapping[str, str], *, healthy: bool, stdout: IO[bytes] | int = subprocess.DEVNULL
) -> Rig:
    backend = FakeBackend(healthy=healthy)
    await backend.start()
    settings = {"NOCTAYA_BACKEND_URL": backend.url, "NOCTAYA_HTTP_ENGINE": engine, **env}
    rig = Rig(GatewayProcess(settings, stdout=stdout), backend)
    try:
        await rig.gateway.start()
        if healthy:
            await rig.set_healthy(True)
    except BaseException:
        await rig.stop()
        raise
    return rig


class Rigs:
    """Shared gateways by engine and environment; the least recently used one goes when there are too many."""

    def __init__(self, limit: int = 8) -> None:
        self._limit = limit
        self._kept: dict[tuple[str, ...], Rig] = {}
        self._used: dict[tuple[str, ...], float] = {}

    async def lend(self, engine: str, env: Mapping[str, str], *, healthy: bool) -> Rig:
        key = (engine, *(f"{name}={value}" for name, value in sorted(env.items())))
        rig = self._kept.get(key)
        if rig is None or not rig.gateway.running:
            rig = await start_rig(engine, env, healthy=True)
            self._kept[key] = rig
        self._used[key] = time.monotonic()
        await self._shrink()
        await self._reset(rig, healthy=healthy)
        return rig

    async def give_back(self, rig: Rig) -> None:
        """A rig that fails to come to rest is thrown away, and its user's test fails."""
        try:
            await rig.set_healthy(True)
            await rig.at_rest()
        except BaseException:
            await self._drop(rig)
            raise

    async def close(self) -> None:
        for rig in list(self._kept.values()):
            await self._drop(rig)

    async def _reset(self, rig: Rig, *, healthy: bool) -> None:
        await rig.set_healthy(True)
        await rig.set_healthy(healthy)
        rig.backend.reset()
        rig.gateway.lines.clear()

    async def _shrink(self) -> None:
        while len(self._kept) > self._limit:
            oldest = min(self._used, key=self._used.__getitem__)
            await self._drop(self._kept[oldest])

    async def _drop(self, rig: Rig) -> None:
        for key in [key for key, kept in self._kept.items() if kept is rig]:
            del self._kept[key]
            del self._used[key]
        await rig.stop()
