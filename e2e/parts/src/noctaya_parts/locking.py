"""One at a time among processes: a lock file that the kernel frees when its holder dies."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock; `waiting` is called once when somebody else has it."""
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
