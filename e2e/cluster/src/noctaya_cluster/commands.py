"""Other people's programs, run to their end: `kubectl`, `kind`, `docker`, `helm` are started here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any, Protocol

from .errors import ClusterError


class Run(Protocol):
    """Runs a command whatever comes of it. Raises ClusterError when it is not installed or takes too long."""

    def __call__(
        self, argv: Sequence[str], *, stdin: str | None = None, timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """The finished command with its output as text."""


def run_command(
    argv: Sequence[str], *, stdin: str | None = None, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """On this machine."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        return subprocess.run(
            list(argv), capture_output=True, text=True, check=False, timeout=timeout, **given
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(argv)}: no answer within {timeout:g} s") from error


def must(run: Run, argv: Sequence[str], *, stdin: str | None = None, timeout: float = 300.0) -> str:
    """The output of a command that has to succeed. Raises ClusterError with what it said."""
    done = run(argv, stdin=stdin, timeout=timeout)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise ClusterError(f"{' '.join(argv)}: {said[-2000:]}")
    return done.stdout
