"""A child process with its output in a file, which never outlives us.

Started from the main thread: the kernel binds a child to the thread that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BOUND_EXEC = Path(__file__).with_name("bound_exec.py")


class ChildFailed(Exception):
    """A process ended or did not do what was waited for; the message ends with its last words."""


class Child:
    """One running process, ended by its own pid.

    Args:
        name: for messages.
        argv: program and arguments.
        log: file that gets its output, appended to.
        env: variables over a copy of our own; None removes one.
    """

    def __init__(
        self, name: str, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str | None] | None = None
    ) -> None:
        self.name = name
        self.log = log
        merged: dict[str, str | None] = {**os.environ, **(env or {})}
        command = [sys.executable, "-I", "-S", str(BOUND_EXEC), str(os.getpid()), *map(str, argv)]
        with log.open("ab") as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={key: value for key, value in merged.items() if value is not None},
                start_new_session=True,  # a Ctrl-C is for us; we end our children in order
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As subprocess has it: negative for a signal, None while it runs."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if it still runs."""
        self._process.send_signal(number)

    def wait(self, within: float) -> int:
        """Its exit code; ChildFailed when it does not end in time."""
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired as error:
            raise ChildFailed(f"{self.name} did not end within {within:g} s: {self.last_words()}") from error

    def stop(self, *, grace: float = 5.0) -> int:
        """SIGTERM, SIGKILL after `grace` seconds; returns its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(grace)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """SIGKILL; returns its exit code."""
        self._process.kill()
        return self._process.wait()

    def output(self) -> str:
        """All it said since this start."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def last_words(self, lines: int = 5) -> str:
        """The end of what it said."""
        return "\n".join(self.output().splitlines()[-lines:])

    def check_running(self) -> None:
        """Raises ChildFailed when it has ended."""
        if not self.running:
            raise ChildFailed(f"{self.name} ended with {self.exit_code}: {self.last_words()}")
