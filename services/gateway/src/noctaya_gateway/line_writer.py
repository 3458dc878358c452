"""Lines to a file descriptor that may be slow, full or closed, from an event loop that must not wait for it.

The loop collects lines and hands them over every few milliseconds; a thread writes them. What is not written
yet is bounded: beyond that, lines are dropped and counted. A write that fails loses its lines, which are
counted too, and the next ones are tried again, so a disk that has room again gets lines again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

PENDING_LIMIT = 4 * 1024 * 1024
"""Bytes that may wait to be written."""
INTERVAL = 0.05
"""Seconds for which lines are collected before they are handed over."""
CLOSE_TIMEOUT = 1.0
"""Seconds a stop waits for the last lines."""
COMPLAINT_INTERVAL = 60.0
"""Seconds between two log lines about the same trouble."""


class LineWriter:
    """Writes to `descriptor`, which stays open.

    Attributes:
        accepted: lines taken, so far.
        dropped: lines not taken, because too much was waiting.
        written: lines written.
        failed: lines that could not be written.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        loop: asyncio.AbstractEventLoop,
        limit: int = PENDING_LIMIT,
        write: Callable[[int, bytes | memoryview], int] = os.write,
    ) -> None:
        self.accepted = self.dropped = 0
        self.written = self.failed = 0
        self._descriptor = descriptor
        self._loop = loop
        self._limit = limit
        self._write = write
        self._lines: list[bytes] = []
        self._bytes_in = 0
        self._bytes_out = 0  # belongs to the thread; the loop only reads it
        self._timer: asyncio.TimerHandle | None = None
        self._batches: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._torn = False
        self._complained = -COMPLAINT_INTERVAL

    def put(self, line: bytes) -> None:
        """Have `line`, which ends with a newline, written soon. Never waits, never fails."""
        size = len(line)
        if self._bytes_in - self._bytes_out + size > self._limit:
            self.dropped += 1
            return
        self.accepted += 1
        self._bytes_in += size
        self._lines.append(line)
        if self._timer is None:
            self._timer = self._loop.call_later(INTERVAL, self._hand_over)

    async def close(self, *, timeout: float = CLOSE_TIMEOUT) -> None:  # noqa: ASYNC109
        """Write what there is, for at most `timeout` seconds; nothing is taken afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        self._hand_over()
        self._limit = 0
        if self._thread is not None:
            self._batches.put(None)
            await asyncio.to_thread(self._thread.join, timeout)

    def _hand_over(self) -> None:
        self._timer = None
        lines, self._lines = self._lines, []
        if not lines:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="line-writer", daemon=True)
            self._thread.start()
        self._batches.put(lines)

    # In the thread

    def _run(self) -> None:
        while (lines := self._batches.get()) is not None:
            data = b"".join(lines)
            done = self._write_all(b"\n" + data if self._torn else data) - int(self._torn)
            self._bytes_out += len(data)
            if done >= len(data):
                self._torn = False
                self.written += len(lines)
            else:
                whole = data[: max(done, 0)].count(b"\n")
                self._torn = (self._torn and done < 0) or (done > 0 and data[done - 1 : done] != b"\n")
                self.written += whole
                self.failed += len(lines) - whole

    def _write_all(self, data: bytes) -> int:
        """Write as much as can be; how many bytes that were."""
        view = memoryview(data)
        done = 0
        while done < len(data):
            try:
                done += self._write(self._descriptor, view[done:])
            except BlockingIOError:
                select.select((), (self._descriptor,), (), 1.0)
            except OSError as error:
                self._complain(error)
                break
        return done

    def _complain(self, error: OSError) -> None:
        now = time.monotonic()
        if now - self._complained >= COMPLAINT_INTERVAL:
            self._complained = now
            log.warning("access log can't be written", extra={"error": str(error)})
