"""Locks among processes, shared or not, that the kernel frees when their holder dies, however it dies."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def locked(file: Path, *, waiting: Callable[[], None]) -> Iterator[IO[str]]:
    """Be the only one; `waiting` is called once when somebody else is there.

    A child that inherits the handle goes on holding the lock.
    """
    handle = take_if_unused(file)
    if handle is None:
        waiting()
        handle = file.open("a")
        fcntl.flock(handle, fcntl.LOCK_EX)
    with handle:
        yield handle


@contextmanager
def shared(file: Path) -> Iterator[None]:
    """Be one of those who use something; waits while somebody holds it alone."""
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield


def take_if_unused(file: Path) -> IO[str] | None:
    """An open handle that holds the lock alone, or None while anybody uses it."""
    handle = file.open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def in_use(file: Path) -> bool:
    """Whether anybody holds the lock now."""
    handle = take_if_unused(file)
    if handle is None:
        return True
    handle.close()
    return False
