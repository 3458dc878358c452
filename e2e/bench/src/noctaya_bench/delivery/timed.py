"""A process from its start to its end: seconds, CPU seconds and highest resident memory.

The kernel's own maximum of a child (`ru_maxrss`) begins with what its parent had when it was forked. So the
memory is looked at while the process runs, where it has a maximum of its own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..children import ChildError
from ..procfs import peak_rss_bytes

_LOOK_SECONDS = 0.02
_NO_PROXY = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
"""Whatever proxies this machine has: the hub is on it."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process took."""

    seconds: float
    cpu: float
    peak_bytes: int


async def timed(name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path, within: float) -> Timed:
    """Run a process to its end.

    Raises:
        ChildError: it ended with something else than 0, or not within so many seconds.
    """
    return await asyncio.to_thread(_timed, name, argv, env, log, within)


def _timed(name: str, argv: Sequence[str], env: Mapping[str, str], log: Path, within: float) -> Timed:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    begun = time.monotonic()
    try:
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            {**os.environ, **_NO_PROXY, **env},
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
        )
    finally:
        os.close(output)
    peak, ended = 0, 0
    while not ended:
        if time.monotonic() - begun > within:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise ChildError(f"{name} did not end within {within:g} s")
        time.sleep(_LOOK_SECONDS)
        peak = max(peak, _peak(pid))
        ended, status, usage = os.wait4(pid, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-3:])
        raise ChildError(f"{name} ended with {code}: {tail}")
    seconds = time.monotonic() - begun
    return Timed(seconds=seconds, cpu=usage.ru_utime + usage.ru_stime, peak_bytes=peak)


def _peak(pid: int) -> int:
    try:
        return peak_rss_bytes(pid)
    except KeyError:
        return 0  # it has ended and has no memory any more
