"""A machine without processes: children that live in memory, probes that are told what to say."""

import asyncio
import itertools
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from noctaya_cli.child import CommandFailed, Exit
from noctaya_cli.events import EventKind
from noctaya_cli.probe_attempt import ProbeFailed
from noctaya_cli.probes import Probe
from noctaya_cli.replica import ReplicaHost


class FakeChild:
    """A process that ends when it is told to, `term_takes` seconds after SIGTERM (None: never)."""

    def __init__(self, pid: int, port: int, *, term_takes: float | None) -> None:
        self.pid = pid
        self.port = port
        self.healthy = False
        self.signals: list[tuple[str, float]] = []
        self._term_takes = term_takes
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    @property
    def running(self) -> bool:
        return not self._exit.done()

    async def wait(self) -> Exit:
        return await asyncio.shield(self._exit)

    def exit(self, ended: Exit) -> None:
        if not self._exit.done():
            self.healthy = False
            self._exit.set_result(ended)

    def terminate(self) -> None:
        loop = asyncio.get_running_loop()
        if self.running:
            self.signals.append(("TERM", loop.time()))
            if self._term_takes is not None:
                loop.call_later(self._term_takes, self.exit, Exit())

    def kill(self) -> None:
        if self.running:
            self.signals.append(("KILL", asyncio.get_running_loop().time()))
            self.exit(Exit(signal=signal.SIGKILL))


class FakeMachine:
    """Starts fake children; `host` is what a replica or a replica set needs."""

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.events: list[tuple[EventKind, str, Mapping[str, object]]] = []
        self.doomed: list[str] = []
        self.term_takes: float | None = 0.0
        self.missing = False
        self.refusal: OSError | None = None
        self.idle = asyncio.Event()
        self.idle.set()
        self._pids = itertools.count(1000)

    @property
    def running(self) -> list[FakeChild]:
        return [child for child in self.children if child.running]

    @property
    def kinds(self) -> list[EventKind]:
        return [kind for kind, _, _ in self.events]

    def host(self) -> ReplicaHost:
        return ReplicaHost(
            spawn=self.spawn,
            attempt=self.attempt,
            environment={},
            log_directory=Path(),
            drained=self.drained,
            emit=lambda kind, replica, details: self.events.append((kind, replica, details)),
            doomed=lambda replica, why: self.doomed.append(f"{replica}: {why}"),
        )

    async def spawn(self, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> FakeChild:
        if self.missing:
            raise CommandFailed(f"{command[0]}: No such file or directory")
        if self.refusal is not None:
            raise self.refusal
        child = FakeChild(next(self._pids), int(env["PORT"]), term_takes=self.term_takes)
        self.children.append(child)
        return child

    async def attempt(self, probe: Probe, *, port: int, env: Mapping[str, str]) -> None:
        if not any(child.healthy for child in self.running if child.port == port):
            raise ProbeFailed("status 503")

    async def drained(self) -> None:
        await self.idle.wait()
