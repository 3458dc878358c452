"""The replicas of one service: as many as were asked for, started and stopped as a Deployment would.

Scaling in takes replicas that aren't ready first, then the youngest. A replica that is going keeps its port
until it is gone, and doesn't count: a scale-out during a drain starts a new one, as a Deployment does.
"""

import asyncio
from collections.abc import Callable

from noctaya_cli.events import EventKind
from noctaya_cli.plan import ContainerPlan
from noctaya_cli.ports import LOOPBACK, PortPool
from noctaya_cli.replica import Replica, ReplicaHost, ReplicaPhase


class ReplicaSet:
    """Keeps `wanted` replicas of one container alive.

    `changed` is called, from the event loop, whenever anything that a reader could see has changed.
    """

    def __init__(
        self,
        plan: ContainerPlan,
        *,
        service: str,
        host: ReplicaHost,
        ports: PortPool,
        changed: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._service = service
        self._host = host
        self._ports = ports
        self._changed = changed
        self._born = 0
        self._closed = False
        self._running: dict[Replica, asyncio.Task[None]] = {}

    @property
    def replicas(self) -> list[Replica]:
        """Every replica that isn't gone, oldest first."""
        return list(self._running)

    @property
    def live(self) -> list[Replica]:
        """Replicas that count: not asked to stop."""
        return [replica for replica in self._running if not replica.stopping]

    @property
    def ready(self) -> int:
        """How many are ready."""
        return sum(replica.phase is ReplicaPhase.READY for replica in self.live)

    @property
    def endpoints(self) -> list[str]:
        """`host:port` of the replicas that may get requests once they answer; never one that is going."""
        return [f"{LOOPBACK}:{replica.port}" for replica in self._running if replica.routable]

    def scale(self, wanted: int) -> None:
        """Start or stop replicas until `wanted` are live. Raises PortUnavailable when no port is left."""
        if self._closed:
            return
        live = self.live
        if len(live) != wanted:
            self._host.emit(EventKind.SCALED, "", {"from": len(live), "to": wanted})
        for _ in range(wanted - len(live)):
            self._add()
        leaving = sorted(live, key=lambda replica: (replica.phase is ReplicaPhase.READY, -replica.number))
        for replica in leaving[: max(0, len(live) - wanted)]:
            replica.stop()

    async def close(self) -> None:
        """Stop all replicas in order and wait until they are gone; none is started any more."""
        self._closed = True
        for replica in self.replicas:
            replica.stop()
        await self._gone()

    def kill(self) -> None:
        """SIGKILL all replicas; `close` waits until they are gone."""
        self._closed = True
        for replica in self.replicas:
            replica.kill()

    async def _gone(self) -> None:
        while self._running:
            await asyncio.wait(self._running.values())
            await asyncio.sleep(0)  # done callbacks take the tasks out

    def _add(self) -> None:
        self._born += 1
        replica = Replica(
            self._plan,
            name=f"{self._service}-{self._born}",
            number=self._born,
            port=self._ports.take(),
            host=self._host,
            changed=self._changed,
        )
        task = asyncio.create_task(replica.run(), name=replica.name)
        self._running[replica] = task
        task.add_done_callback(lambda task: self._remove(replica, task))
        self._changed()

    def _remove(self, replica: Replica, task: asyncio.Task[None]) -> None:
        del self._running[replica]
        error = None if task.cancelled() else task.exception()
        if error is not None:  # the next scale() replaces it
            self._host.emit(EventKind.NOTE, replica.name, {"text": f"replica lost: {error!r}"})
        self._ports.give_back(replica.port)
        self._changed()
