"""Turns: who takes something away from the whole cluster does so alone, everybody else waits only for that.

Every scenario is in company of others from its beginning to its end. One that pauses the API server, drains a
node or removes KEDA leaves the company for just that while: what comes before and after - services that come
up, services that go back to zero - happens beside others. Turns are in the order in which they were asked
for, so that nobody who wants to be alone waits for ever.

The locks are the kernel's: a process that dies gives its turn up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from noctaya_parts.locking import locked, shared


class Turns:
    """One scenario's part in the order of all scenarios of a cluster; a context manager: in company.

    Args:
        folder: for the locks, the same for all processes that use the cluster.
        waiting: told when others are waited for.
    """

    def __init__(self, folder: Path, *, waiting: Callable[[], None] = lambda: None) -> None:
        self._queue, self._room = folder / "turns-queue.lock", folder / "turns-room.lock"
        self._waiting = waiting
        self._company = ExitStack()
        self.waited = 0.0
        """Seconds that others were waited for, so far."""
        self.lonely = 0.0
        """Seconds alone, so far."""

    def __enter__(self) -> Self:
        begun = time.monotonic()
        with locked(self._queue, waiting=self._waiting):
            self._company.enter_context(shared(self._room))
        self.waited += time.monotonic() - begun
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._company.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within the block no other scenario is under way; what this one needs may have changed before it."""
        self._company.close()
        begun = time.monotonic()
        try:
            with ExitStack() as room:
                with locked(self._queue, waiting=self._waiting):  # who comes later waits behind us
                    room.enter_context(locked(self._room, waiting=self._waiting))
                entered = time.monotonic()
                self.waited += entered - begun
                try:
                    yield
                finally:
                    self.lonely += time.monotonic() - entered
        finally:
            self.__enter__()
