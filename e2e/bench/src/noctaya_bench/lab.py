"""Everything one measure runs: a directory, the stub, the peers, all of it stopped when the measure ends."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from .backend import Backend
from .children import Child, free_port
from .tools import Tools

Amount = TypeVar("Amount", int, float)


class Lab:
    """An async context; children are stopped in reverse order of their start, also when the measure fails."""

    def __init__(self, *, directory: Path, tools: Tools, quick: bool) -> None:
        self.directory = directory
        self.tools = tools
        self.quick = quick
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Lab:
        self.directory.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def pick(self, *, quick: Amount, full: Amount) -> Amount:
        """The value for this kind of run."""
        return quick if self.quick else full

    async def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Child:
        """Start a child that is stopped with this lab."""
        child = await Child.start(name, argv, log=self.directory / f"{name}.log", env=env)
        self._stack.push_async_callback(child.stop)
        return child

    async def start_backend(self, *, ready: bool = True) -> Backend:
        """Start a stub backend and wait until it listens."""
        port = free_port()
        argv = [sys.executable, "-m", "noctaya_bench.stub", "--port", str(port)]
        child = await self.start(f"stub-{port}", argv if ready else [*argv, "--cold"])
        await child.listening(port)
        return Backend(child=child, port=port)
