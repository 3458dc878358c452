"""Child processes that never outlive the bench.

Each is stopped by its own pid, with SIGTERM first, and the kernel signals it too when the bench itself dies.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
START_SECONDS = 20.0
STOP_SECONDS = 8.0
_libc = ctypes.CDLL(None, use_errno=True)


class ChildError(RuntimeError):
    """A process ended, or did not listen, before it could be measured."""


def free_port() -> int:
    """A loopback port that is free now; nginx and wrk can't be told to choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One running process with its output in a file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(
        cls, name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None
    ) -> Child:
        """Start the process with `env` added to a copy of ours."""
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(env or {})},
                preexec_fn=_die_with_parent,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def listening(self, port: int, within: float = START_SECONDS) -> None:
        """Return once the loopback port accepts connections; ChildError with the log's end otherwise."""
        deadline = asyncio.get_running_loop().time() + within
        while asyncio.get_running_loop().time() < deadline:
            if self._process.returncode is not None:
                raise ChildError(f"{self.name} ended with {self._process.returncode}: {self.log_tail()}")
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            await writer.wait_closed()
            return
        raise ChildError(f"{self.name} did not listen on {port} within {within:g} s: {self.log_tail()}")

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after `STOP_SECONDS`; returns when the process is gone."""
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except TimeoutError:
                self._process.kill()
        await self._process.wait()

    def log_tail(self, lines: int = 3) -> str:
        """The last lines it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
