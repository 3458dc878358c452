"""Console scripts as processes whose every word is kept: output, arguments, termination message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

WITHIN = 60.0
"""Seconds on a busy machine."""
T = TypeVar("T")


def eventually(look: Callable[[], T], *, what: str, within: float = WITHIN) -> T:
    """The first true value that `look` gives."""
    end = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {within:g} s: {what}"
        time.sleep(0.05)


class Program:
    """One process of a script of this Python's environment; a context manager that kills what still runs.

    Args:
        script: its name.
        arguments: its arguments.
        env: its whole environment besides PATH and HOME.
        folder: for its output.
    """

    def __init__(self, script: str, *arguments: str, env: Mapping[str, str], folder: Path) -> None:
        self.name = script
        self._output = folder / f"{script}-{len(list(folder.glob(f'{script}-*')))}.log"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [str(Path(sys.executable).with_name(script)), *arguments],
                env={"PATH": os.environ["PATH"], "HOME": str(folder), **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.arguments = Path(f"/proc/{self.process.pid}/cmdline").read_bytes()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def output(self) -> str:
        """What it wrote so far, to both streams."""
        return self._output.read_text("utf-8", "replace")

    def record(self, message: str, **fields: str) -> dict[str, Any]:
        """The first log record with this message and these fields, waited for."""
        wanted = {"msg": message, **fields}

        def look() -> dict[str, Any] | None:
            for line in self.output.splitlines():
                if line.startswith("{") and wanted.items() <= (found := json.loads(line)).items():
                    return dict(found)
            assert self.process.poll() is None, f"{self.name} ended: {self.output[-2000:]}"
            return None

        found = eventually(look, what=f"{self.name} says {message!r}")
        assert found is not None
        return found

    def end(self, *, stop: bool = False) -> int:
        """Wait for its end, after a SIGTERM if it shall `stop`; returns the exit code."""
        if stop:
            self.process.terminate()
        return self.process.wait(WITHIN)

    def places(self) -> dict[str, str | bytes]:
        """Where its secrets must not be."""
        return {f"output of {self.name}": self.output, f"arguments of {self.name}": self.arguments}
