"""One replica: a process that is started, probed, restarted when it ends, drained and stopped.

What the kubelet does for the container of a Pod, for a local process. One task, `run`, owns the whole life;
`stop` only asks it to end. The phases in order:

    starting -> loading -> ready <-> loading          (a probe decides)
                  |  ended or failed a probe
                  v
               backoff -> starting                    (first restart at once, then 10 s doubling to 5 min)
    any of them -> draining -> stopping -> gone       (stop)
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from noctaya_cli.backoff import RESTART_FIRST, RestartBackoff
from noctaya_cli.child import Child, CommandFailed, Spawn
from noctaya_cli.events import EventKind
from noctaya_cli.plan import ContainerPlan
from noctaya_cli.probe_attempt import Attempt
from noctaya_cli.probe_loop import ProbeLoop
from noctaya_cli.probes import Health

LEAST_GRACE = 2.0
"""Seconds a process gets after SIGTERM even when the drain used up the whole grace, as in the kubelet."""


class ReplicaPhase(StrEnum):
    """Where a replica is in its life."""

    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    BACKOFF = "backoff"
    DRAINING = "draining"
    STOPPING = "stopping"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHost:
    """What a replica needs from the machine and from its service; the seams of the tests.

    `drained` returns when the gateway has nothing in flight any more (it is given up when the drain time is
    over). `emit(kind, replica, details)` publishes an event. `doomed(replica, why)` is told when the
    replica can't come up.
    """

    spawn: Spawn
    attempt: Attempt
    environment: Mapping[str, str]
    log_directory: Path
    drained: Callable[[], Awaitable[None]]
    emit: Callable[[EventKind, str, Mapping[str, object]], None]
    doomed: Callable[[str, str], None]


class Replica:
    """A replica with a name and a loopback port of its own."""

    def __init__(
        self,
        plan: ContainerPlan,
        *,
        name: str,
        number: int = 0,
        port: int,
        host: ReplicaHost,
        changed: Callable[[], None],
    ) -> None:
        self.name = name
        self.number = number
        self.port = port
        self.phase = ReplicaPhase.STARTING
        self.reason = ""
        self.pid: int | None = None
        self.log = host.log_directory / f"{name}.log"
        self._plan = plan
        self._host = host
        self._changed = changed
        self._backoff = RestartBackoff()
        self._stop = asyncio.Event()
        self._kill = asyncio.Event()
        self._was_ready = False
        self._hopeless = False

    @property
    def restarts(self) -> int:
        """How often the process has ended on its own or failed a probe."""
        return self._backoff.restarts

    @property
    def routable(self) -> bool:
        """May the gateway look at it: its process runs and, after it was ready once, still is.

        A replica that loads is included, so that the gateway's own prober finds it the moment it answers.
        """
        if self.stopping or self.pid is None:
            return False
        return self.phase is ReplicaPhase.READY or (
            self.phase is ReplicaPhase.LOADING and not self._was_ready
        )

    @property
    def stopping(self) -> bool:
        """True from the moment `stop` was called; a stopping replica gets no new requests."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Drain, then SIGTERM, then after the grace SIGKILL."""
        if not self._stop.is_set():
            self._stop.set()
            self._changed()

    def kill(self) -> None:
        """SIGKILL now."""
        self._stop.set()
        self._kill.set()

    async def run(self) -> None:
        """The whole life; returns when the replica is gone."""
        self._emit(EventKind.REPLICA_STARTING, port=self.port)
        while not self._stop.is_set():
            reason, ran = await self._run_once()
            if self._stop.is_set():
                break
            await self._wait_before_restart(reason, ran=ran)
        self._become(ReplicaPhase.GONE)
        self._emit(EventKind.REPLICA_GONE)

    async def _run_once(self) -> tuple[str, float]:
        """One process from start to end; returns why it ended and how many seconds it ran."""
        clock = asyncio.get_running_loop().time
        environment = self._plan.process_environment(port=self.port, base=self._host.environment)
        self._become(ReplicaPhase.STARTING)
        began = clock()
        try:
            child = await self._host.spawn(
                self._plan.command_line(port=self.port), env=environment, log=self.log
            )
        except (CommandFailed, OSError) as error:  # also what this machine has no room for
            self._hopeless = True
            return describe(error), 0.0
        self.pid = child.pid
        self._was_ready = self._hopeless = False
        self._emit(EventKind.PROCESS_STARTED, pid=child.pid, port=self.port)
        self._become(ReplicaPhase.LOADING)
        try:
            reason = await self._supervise(child, environment)
        except BaseException:
            child.kill()
            raise
        finally:
            self.pid = None
            self._changed()
        return reason, clock() - began

    async def _supervise(self, child: Child, environment: Mapping[str, str]) -> str:
        health = Health(self._plan.probes)
        probes = ProbeLoop(
            health,
            port=self.port,
            env=environment,
            attempt=self._host.attempt,
            changed=lambda: self._health_changed(health),
        )
        self._health_changed(health)
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(child.wait())
            probing = group.create_task(probes.run())
            stopped = group.create_task(self._stop.wait())
            await asyncio.wait({ended, probing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                if self._stop.is_set():
                    await self._drain_and_end(child, probing, ended)
                else:
                    self._emit(EventKind.REPLICA_UNREADY, reason=probing.result())
                    await self._end(child, ended, grace=self._plan.grace)
            probing.cancel()
            stopped.cancel()
        self.reason = health.failure or str(ended.result())
        return self.reason

    async def _drain_and_end(
        self, child: Child, probing: asyncio.Task[str], ended: asyncio.Task[object]
    ) -> None:
        """preStop: serve on while requests are in flight, at most the drain time; the grace includes it."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._plan.grace
        probing.cancel()
        if self._was_ready and self._plan.drain > 0:
            self._become(ReplicaPhase.DRAINING)
            self._emit(EventKind.REPLICA_DRAINING, seconds=self._plan.drain)
            drained = asyncio.ensure_future(self._host.drained())
            killed = asyncio.ensure_future(self._kill.wait())
            await asyncio.wait(
                {drained, killed, ended}, timeout=self._plan.drain, return_when=asyncio.FIRST_COMPLETED
            )
            drained.cancel()
            killed.cancel()
        await self._end(child, ended, grace=max(LEAST_GRACE, deadline - clock()))

    async def _end(self, child: Child, ended: asyncio.Task[object], *, grace: float) -> None:
        """SIGTERM, wait, SIGKILL, wait."""
        self._become(ReplicaPhase.STOPPING)
        self._emit(EventKind.REPLICA_STOPPING)
        if not self._kill.is_set():
            child.terminate()
            killed = asyncio.ensure_future(self._kill.wait())
            await asyncio.wait({ended, killed}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
        child.kill()
        await asyncio.wait({ended})

    async def _wait_before_restart(self, reason: str, *, ran: float) -> None:
        delay = self._backoff.ended(ran=ran)
        if self._hopeless:  # an immediate second try would find the same
            delay = max(delay, RESTART_FIRST)
        self._emit(EventKind.REPLICA_EXITED, reason=reason, restarts=self.restarts, ran_seconds=round(ran, 3))
        self.reason = reason
        if self._hopeless:
            self._host.doomed(self.name, reason)
        elif self._backoff.crash_looping:
            self._host.doomed(self.name, f"ended {self.restarts} times, the last time with {reason}")
        if delay <= 0:
            return
        self._become(ReplicaPhase.BACKOFF)
        self._emit(EventKind.REPLICA_BACKOFF, seconds=delay, reason=reason)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({stopped}, timeout=delay)
        stopped.cancel()

    def _health_changed(self, health: Health) -> None:
        if self.stopping or health.failure is not None:
            return
        if health.ready and self.phase is not ReplicaPhase.READY:
            self.reason = ""
            self._was_ready = True
            self._become(ReplicaPhase.READY)
            self._emit(EventKind.REPLICA_READY)
        elif not health.ready and self.phase is ReplicaPhase.READY:
            self._become(ReplicaPhase.LOADING)
            self._emit(EventKind.REPLICA_UNREADY, reason="readiness probe failed")

    def _become(self, phase: ReplicaPhase) -> None:
        if self.phase is not phase:
            self.phase = phase
            self._changed()

    def _emit(self, kind: EventKind, **details: object) -> None:
        self._host.emit(kind, self.name, details)


def describe(error: CommandFailed | OSError) -> str:
    """Why a process couldn't be started, in a line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
