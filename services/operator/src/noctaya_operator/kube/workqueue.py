"""Keys waiting to be worked on: each at most once in the queue and at most once in work.

The semantics are client-go's: a key added while it waits is not added again; one added while it is in work
comes back when that work is done. Failures come back after 5 ms, doubling up to 1000 s. Beyond client-go
there are lanes: a key is queued in a lane named after why it was added, and workers take from the lanes in
turn, so that five hundred keys queued for one reason don't stand before the one queued for another.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.005
"""Seconds after the first failure of a key (client-go)."""
MAX_DELAY = 1000.0
"""Seconds at most (client-go)."""
TICK = 1e-6
"""Seconds a timer may fire early."""


class QueueShutDown(Exception):
    """The queue gives out no more keys."""


class QueueObserver(Protocol):
    """Told what happens, for metrics; see `metrics.QueueMetrics`."""

    def added(self) -> None:
        """A key was queued."""

    def retried(self) -> None:
        """A key was delayed because of a failure."""

    def taken(self, waited: float) -> None:
        """A key was taken into work after waiting so many seconds."""

    def finished(self, worked: float) -> None:
        """Work on a key ended after so many seconds."""


class WorkQueue(Generic[K]):
    """A queue used inside one event loop.

    Args:
        observer: told what happens.
        clock: monotonic seconds; the loop's by default.
        base_delay: seconds after the first failure.
        max_delay: seconds at most.
    """

    def __init__(
        self,
        *,
        observer: QueueObserver | None = None,
        clock: Callable[[], float] | None = None,
        base_delay: float = BASE_DELAY,
        max_delay: float = MAX_DELAY,
    ) -> None:
        self._observer = observer
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._lanes: OrderedDict[str, dict[K, None]] = OrderedDict()
        self._queued: dict[K, float] = {}
        self._in_work: dict[K, float] = {}
        self._again: dict[K, dict[str, None]] = {}
        self._failures: dict[K, int] = {}
        self._due: dict[K, tuple[float, str]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._shut = False

    def __len__(self) -> int:
        """Keys that wait to be taken."""
        return len(self._queued)

    def add(self, key: K, *, lane: str = "") -> None:
        """Queue a key; in a further lane when it waits already in another."""
        if self._shut:
            return
        if key in self._in_work:
            self._again.setdefault(key, {})[lane] = None
            return
        if key not in self._queued:
            self._queued[key] = self._clock()
            if self._observer:
                self._observer.added()
        self._lanes.setdefault(lane, {}).setdefault(key, None)
        self._wake()

    def add_after(self, key: K, delay: float, *, lane: str = "") -> None:
        """Queue a key in `delay` seconds; when it is delayed already, the earlier time counts."""
        if self._shut:
            return
        if delay <= 0:
            self.add(key, lane=lane)
            return
        due = self._clock() + delay
        known = self._due.get(key)
        if known is not None and known[0] <= due:
            return
        self._due[key] = (due, lane)
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, key))
        self._set_timer()

    def add_rate_limited(self, key: K, *, lane: str = "", at_least: float = 0.0) -> float:
        """Queue a key after a delay that doubles until `forget`; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = max(at_least, min(self._max_delay, self._base_delay * 2.0 ** min(failures, 60)))
        if self._observer:
            self._observer.retried()
        self.add_after(key, delay, lane=lane)
        return delay

    def forget(self, key: K) -> None:
        """The key's work went well: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures of the key since the last `forget`."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key, now in work; call `done` afterwards. Raises `QueueShutDown`."""
        while not self._queued:
            if self._shut:
                raise QueueShutDown
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # The wake-up may have been for this one; let another worker have it.
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        if self._shut:
            raise QueueShutDown
        key = self._pop()
        now = self._clock()
        if self._observer:
            self._observer.taken(now - self._queued[key])
        del self._queued[key]
        self._in_work[key] = now
        return key

    def done(self, key: K) -> None:
        """Work on the key ended; it is queued again if it was added meanwhile."""
        began = self._in_work.pop(key)
        if self._observer:
            self._observer.finished(self._clock() - began)
        for lane in self._again.pop(key, {}):
            self.add(key, lane=lane)

    def in_work(self) -> list[float]:
        """Seconds that each key in work has been so."""
        now = self._clock()
        return [now - began for began in self._in_work.values()]

    def shut_down(self) -> None:
        """Give out no more keys; what waits is dropped."""
        self._shut = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake()

    def _pop(self) -> K:
        for lane in list(self._lanes):
            keys = self._lanes[lane]
            if not keys:
                del self._lanes[lane]
                continue
            key = next(iter(keys))
            self._lanes.move_to_end(lane)
            for others in self._lanes.values():
                others.pop(key, None)
            return key
        raise AssertionError("a queued key is in no lane")

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._due.get(self._heap[0][2], (None, ""))[0] != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._heap and not self._shut:
            wait = max(0.0, self._heap[0][0] - self._clock())
            self._timer = asyncio.get_running_loop().call_later(wait, self._release_due)

    def _release_due(self) -> None:
        self._timer = None
        now = self._clock() + TICK
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            known = self._due.get(key)
            if known is not None and known[0] == due:
                del self._due[key]
                self.add(key, lane=known[1])
        self._set_timer()
