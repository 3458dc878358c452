"""What is still to be fetched, handed out piece by piece.

A connection stays with its file, so that a file is hashed while it is written, and files go side by side.
Only when there are fewer files than connections do several fetch one file, piece after piece. The largest
file is begun first.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from noctaya_prewarm.listing import RemoteFile
from noctaya_prewarm.part import Part

_PATIENCE = 1.0


class Task:
    """A file to fetch. All but `link` belongs to the board."""

    def __init__(self, file: RemoteFile) -> None:
        self.file = file
        self.part: Part | None = None
        self.pending: deque[tuple[int, int]] = deque()
        self.active = 0
        self.whole = False
        """The server sends this file only whole."""
        self.mismatches = 0
        self.link = ""
        """Where the source redirected to, asked directly until it refuses."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a file for one connection; `ranged` unless it is the whole file."""

    task: Task
    part: Part
    start: int
    end: int
    ranged: bool


class Halted(Exception):
    """Another worker failed; this one shall stop."""


class Board:
    """The work of several threads.

    Args:
        files: what to fetch.
        piece_size: largest ranged piece in bytes.
        open_part: opens a file's part, when its first piece is taken.
    """

    def __init__(
        self, files: Iterable[RemoteFile], *, piece_size: int, open_part: Callable[[RemoteFile], Part]
    ) -> None:
        self._tasks = [Task(file) for file in sorted(files, key=lambda file: -file.size)]
        self._piece_size = piece_size
        self._open_part = open_part
        self._changed = threading.Condition()
        self._fresh = deque(self._tasks)
        self._begun: list[Task] = []
        self._left = len(self._tasks)
        self.halted = threading.Event()
        self.error: Exception | None = None

    def fail(self, error: Exception) -> None:
        """End the work of all; the first error counts."""
        if self.error is None:
            self.error = error
        self.halted.set()
        # Whoever aborts a run must not wait for a worker that holds the lock in a dead file system.
        if self._changed.acquire(timeout=_PATIENCE):
            try:
                self._changed.notify_all()
            finally:
                self._changed.release()

    def check(self) -> None:
        """Raises Halted once the work has failed."""
        if self.halted.is_set():
            raise Halted

    def take(self, last: Task | None) -> Piece | None:
        """The next piece for a worker whose last one was of `last`; waits while others may bring one back.

        Returns:
            None when all is done.

        Raises:
            Halted: the work has failed.
            OSError, Refused: a part can't be opened.
        """
        with self._changed:
            while True:
                self.check()
                if self._left == 0:
                    return None
                task = self._choose(last)
                if task is not None:
                    return self._cut(task)
                self._changed.wait()

    def fetch_whole(self, task: Task) -> None:
        """The server sends this file only whole: plan it so. To be called before `done` for the piece."""
        with self._changed:
            if not task.whole:
                task.whole = True
                task.pending = deque([(0, task.file.size)])

    def done(self, piece: Piece) -> bool:
        """A piece is written, or given up.

        Returns:
            Whether its file is complete, so that the caller has to `close` or `restart` it.
        """
        with self._changed:
            task = piece.task
            task.active -= 1
            complete = task.active == 0 and not piece.part.gaps()
            if complete:
                task.pending.clear()
                self._begun.remove(task)
            self._changed.notify_all()
            return complete

    def close(self, task: Task) -> None:
        """A file is in its place."""
        with self._changed:
            self._left -= 1
            self._changed.notify_all()

    def restart(self, task: Task) -> None:
        """A file has to be fetched anew."""
        with self._changed:
            task.mismatches += 1
            task.link = ""
            task.pending = deque([(0, task.file.size)])
            self._begun.append(task)
            self._changed.notify_all()

    def close_parts(self) -> None:
        """Close the files of all parts; no worker may be left."""
        for task in self._tasks:
            if task.part is not None:
                task.part.close()
                task.part = None

    def _choose(self, last: Task | None) -> Task | None:
        if last is not None and last.pending and last.active == 0 and last in self._begun:
            return last
        ready = [task for task in self._begun if task.pending]
        idle = next((task for task in ready if task.active == 0), None)
        if idle is not None:
            return idle
        if self._fresh:
            task = self._fresh.popleft()
            task.part = self._open_part(task.file)
            task.pending = deque(task.part.gaps())
            self._begun.append(task)
            return task
        return min(ready, key=lambda task: task.active, default=None)

    def _cut(self, task: Task) -> Piece:
        assert task.part is not None
        task.active += 1
        if not task.pending:
            # Nothing is missing: an empty file, or a part that a kill left just before its verification.
            return Piece(task, task.part, task.file.size, task.file.size, ranged=True)
        start, end = task.pending.popleft()
        if task.whole:
            return Piece(task, task.part, 0, task.file.size, ranged=False)
        cut = min(end, start + self._piece_size)
        if cut < end:
            task.pending.appendleft((cut, end))
        return Piece(task, task.part, start, cut, ranged=(start, cut) != (0, task.file.size))
