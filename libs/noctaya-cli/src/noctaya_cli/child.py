"""One guarded child process, seen from asyncio.

Every process that `noctaya` starts (a gateway, a replica) runs below a guard (see guard.py); this module
starts the guard and speaks with it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GUARD = Path(__file__).with_name("guard.py")
ORPHAN_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL when `noctaya` itself has died.

Nobody waits for the child any more then.
"""


class CommandFailed(Exception):
    """The command could not be executed at all (not found, not executable)."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: an exit code, or the signal that killed it."""

    code: int = 0
    signal: int | None = None

    @property
    def clean(self) -> bool:
        """Exit code 0."""
        return self.signal is None and self.code == 0

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(self.signal).name}"
        return f"killed by signal {self.signal}"


class Child(Protocol):
    """A running process; what the rest of the package knows of one."""

    @property
    def pid(self) -> int:
        """Process id of the command itself."""

    async def wait(self) -> Exit:
        """Wait until it and everything it started is gone; may be awaited by several."""

    def terminate(self) -> None:
        """SIGTERM to the process. No effect when it is gone."""

    def kill(self) -> None:
        """SIGKILL to the process and everything it started. No effect when it is gone."""


class Spawn(Protocol):
    """Starts a child; the seam where tests put a fake one."""

    async def __call__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> Child:
        """Start `command` with exactly `env`, output appended to `log`. Raises CommandFailed."""


class GuardedChild:
    """A child below a guard. Create with `spawn_guarded`."""

    def __init__(
        self,
        pid: int,
        *,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        guard: subprocess.Popen[bytes],
    ) -> None:
        self.pid = pid
        self.guard_pid = guard.pid
        self._guard = guard
        self._writer = writer
        self._exit = asyncio.ensure_future(self._read_exit(reader))

    async def wait(self) -> Exit:
        """Wait for the end of the process; cancelling a waiter doesn't disturb the others."""
        return await asyncio.shield(self._exit)

    def terminate(self) -> None:
        """Ask the guard for SIGTERM."""
        self._order(b"T")

    def kill(self) -> None:
        """Ask the guard for SIGKILL to the whole tree."""
        self._order(b"K")

    def _order(self, letter: bytes) -> None:
        if not self._exit.done() and not self._writer.is_closing():
            self._writer.write(letter)

    async def _read_exit(self, reader: asyncio.StreamReader) -> Exit:
        line = await read_line(reader)
        self._writer.close()
        with contextlib.suppress(ConnectionError):  # the guard has closed its end, which is what we wait for
            await self._writer.wait_closed()
        await asyncio.to_thread(self._guard.wait)  # it ends right after its last line
        kind, _, value = line.partition(" ")
        if kind == "exit":
            return Exit(code=int(value))
        if kind == "signal":
            return Exit(signal=int(value))
        return Exit(signal=signal.SIGKILL)  # the guard itself was killed, and the child with it


async def spawn_guarded(command: Sequence[str], *, env: Mapping[str, str], log: Path) -> GuardedChild:
    """Start `command` below a guard; see `Spawn`."""
    ours, theirs = socket.socketpair()
    try:
        with log.open("ab") as output:
            guard = await asyncio.to_thread(
                subprocess.Popen,
                [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(ORPHAN_GRACE), *command],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env),
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    kind, _, value = (await read_line(reader)).partition(" ")
    if kind != "pid":
        writer.close()
        await asyncio.to_thread(guard.wait)
        raise CommandFailed(f"{command[0]}: {value or 'the guard process ended unexpectedly'}")
    return GuardedChild(int(value), reader=reader, writer=writer, guard=guard)


async def read_line(reader: asyncio.StreamReader) -> str:
    """One line from the guard without its newline; empty when the guard is gone."""
    with contextlib.suppress(ConnectionError):
        return (await reader.readline()).decode(errors="replace").rstrip("\n")
    return ""


def base_environment(extra_path: Path) -> dict[str, str]:
    """The user's environment without our own settings, so that a stray NOCTAYA_* never reaches a child.

    `extra_path` (where the interpreter's console scripts are) is appended to PATH, so that programs
    installed next to `noctaya` are found when the virtual environment isn't activated.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NOCTAYA_")}
    inherited["PATH"] = os.pathsep.join(filter(None, [inherited.get("PATH", os.defpath), str(extra_path)]))
    return inherited
