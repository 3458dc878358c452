"""Backend readiness, watched in the background and owned by the gateway (behaviour G6).

Every known address has one watcher. It probes slowly while nothing hangs on the answer, and fast while
an activation is pending or the data path just failed to connect there. A ready address becomes unready
only after `fall` bad probes in a row, so that neither one slow probe nor a client that left makes a
warm service cold; an unready one becomes ready after `rise` good ones. A service at zero that somebody
else brings up is noticed by the slow probes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.probe import Outcome

log = logging.getLogger(__name__)

Probe = Callable[[Address], Awaitable[Outcome]]


class _Watch:
    __slots__ = ("bad", "good", "suspect", "task")

    def __init__(self) -> None:
        self.good = 0
        self.bad = 0
        self.suspect = False
        self.task: asyncio.Task[None] | None = None


class Prober:
    """Watches the addresses of a balancer; intervals in seconds."""

    def __init__(
        self,
        *,
        balancer: Balancer,
        probe: Probe,
        interval: float,
        fast_interval: float,
        rise: int,
        fall: int,
        is_urgent: Callable[[], bool],
        on_reconnect: Callable[[], None] = lambda: None,
    ) -> None:
        self._balancer = balancer
        self._probe = probe
        self._interval = interval
        self._fast_interval = min(fast_interval, interval)
        self._rise = rise
        self._fall = fall
        self._is_urgent = is_urgent
        self._on_reconnect = on_reconnect
        self._watches: dict[Address, _Watch] = {}
        balancer.subscribe(suspect=self._suspect)

    @property
    def ready(self) -> bool:
        """True when a backend is ready."""
        return self._balancer.ready

    def follow(self) -> None:
        """Watch exactly the addresses the balancer knows now."""
        known = self._balancer.addresses
        for address in [address for address in self._watches if address not in known]:
            self._stop(self._watches.pop(address))
        for address in known:
            if address not in self._watches:
                watch = self._watches[address] = _Watch()
                self._restart(address, watch)

    def wake(self) -> None:
        """An activation began: probe every address that is not ready at once, and fast from now on."""
        for address, watch in self._watches.items():
            if not self._balancer.is_ready(address):
                self._restart(address, watch)

    async def close(self) -> None:
        """Stop all watchers."""
        tasks = [watch.task for watch in self._watches.values() if watch.task is not None]
        for watch in self._watches.values():
            self._stop(watch)
        self._watches.clear()
        if tasks:
            await asyncio.wait(tasks)

    def _suspect(self, address: Address) -> None:
        watch = self._watches.get(address)
        if watch is not None:
            watch.suspect = True
            self._restart(address, watch)

    def _restart(self, address: Address, watch: _Watch) -> None:
        self._stop(watch)
        task = watch.task = asyncio.create_task(self._run(address, watch), name=f"probe {address}")
        task.add_done_callback(lambda ended: self._revive(ended, address, watch))

    def _revive(self, ended: asyncio.Task[None], address: Address, watch: _Watch) -> None:
        """A watcher that ended by an error of ours is started again: readiness must never stand still."""
        if ended.cancelled() or watch.task is not ended:
            return
        log.error("a probe watcher failed", exc_info=ended.exception(), extra={"address": str(address)})
        watch.task = None
        ended.get_loop().call_later(self._interval, self._resume, address, watch)

    def _resume(self, address: Address, watch: _Watch) -> None:
        if watch.task is None and self._watches.get(address) is watch:
            self._restart(address, watch)

    def _stop(self, watch: _Watch) -> None:
        if watch.task is not None:
            watch.task.cancel()
            watch.task = None

    async def _run(self, address: Address, watch: _Watch) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            self._judge(address, watch, await self._probe(address))
            urgent = watch.suspect or (self._is_urgent() and not self._balancer.is_ready(address))
            interval = self._fast_interval if urgent else self._interval
            # The next probe starts one interval after this one did, so a probe's own time adds no delay.
            await asyncio.sleep(max(begun + interval - loop.time(), 0.0))

    def _judge(self, address: Address, watch: _Watch, outcome: Outcome) -> None:
        ready = self._balancer.is_ready(address)
        if outcome is Outcome.READY:
            watch.bad = 0
            watch.good += 1
            if ready or watch.good >= self._rise:
                watch.suspect = False
                self._balancer.mark(address, ready=True)
                if not ready:
                    log.info("backend is ready", extra={"address": str(address)})
            return
        watch.good = 0
        watch.bad += 1
        if outcome is not Outcome.REFUSED:
            self._on_reconnect()
        if ready and watch.bad == 1:
            self._balancer.doubt()
        if ready and watch.bad >= self._fall:
            watch.suspect = False
            log.warning("backend is no longer ready", extra={"address": str(address), "probe": outcome.value})
            self._balancer.mark(address, ready=False)
