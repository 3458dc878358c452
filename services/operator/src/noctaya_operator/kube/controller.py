"""Workers that take keys off a queue and reconcile them, one failure at a time.

Nothing a reconcile does stops its worker: an error brings the key back later, an exception nobody expected as
well, and one that hangs is ended after a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from noctaya_operator.kube.errors import ApiError, Conflict
from noctaya_operator.kube.workqueue import QueueShutDown, WorkQueue

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

RECONCILE_TIMEOUT = 120.0
"""Seconds; a reconcile makes a few dozen requests of at most 30 s each, and normally takes well under one."""
STOP_GRACE = 3.0
"""Seconds a reconcile may go on when the controller stops; less than what remains of a lost lease."""
LONGEST_WAIT = 60.0
"""Seconds; a Retry-After beyond it is not believed."""

LATER = "later"
"""The lane of keys that come back by themselves, so that a storm of failures stands behind no change."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile went well."""

    requeue_after: float | None = None
    """Seconds until the key is to be looked at again, None for only when something changes."""


DONE = Result()


class TerminalError(Exception):
    """Trying again is of no use until something changes."""


class ControllerObserver(Protocol):
    """Told what happens, for metrics; see `metrics.ControllerMetrics`."""

    def started(self, workers: int) -> None:
        """The controller runs with so many workers."""

    def began(self) -> None:
        """A reconcile began."""

    def ended(self, outcome: str, seconds: float) -> None:
        """It ended: success, requeue_after, error, terminal_error, panic or timeout."""


class Controller(Generic[K]):
    """Runs `reconcile` for the keys of a queue.

    Args:
        name: for logs.
        reconcile: brings one key's world in order; any exception means "again later", save `TerminalError`.
        queue: where keys come from.
        workers: how many keys are worked on at once.
        timeout: seconds a reconcile may take.
        stop_grace: seconds running reconciles get to finish when the controller stops.
        observer: told what happens.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result]],
        *,
        queue: WorkQueue[K],
        workers: int = 1,
        timeout: float = RECONCILE_TIMEOUT,
        stop_grace: float = STOP_GRACE,
        observer: ControllerObserver | None = None,
    ) -> None:
        self._name = name
        self._reconcile = reconcile
        self._queue = queue
        self._workers = workers
        self._timeout = timeout
        self._stop_grace = stop_grace
        self._observer = observer

    async def run(self) -> None:
        """Work until cancelled or the queue is shut down; returns only after every worker has stopped."""
        if self._observer:
            self._observer.started(self._workers)
        workers = [
            asyncio.create_task(self._work(), name=f"{self._name} worker {number}")
            for number in range(self._workers)
        ]
        try:
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended:
                worker.result()
        finally:
            self._queue.shut_down()
            await _stop(workers, self._stop_grace)

    async def _work(self) -> None:
        while True:
            try:
                key = await self._queue.get()
            except QueueShutDown:
                return
            try:
                await self._process(key)
            finally:
                self._queue.done(key)

    async def _process(self, key: K) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        if self._observer:
            self._observer.began()
        outcome = "error"
        try:
            outcome = await self._attempt(key)
        finally:
            if self._observer:
                self._observer.ended(outcome, clock() - began)

    async def _attempt(self, key: K) -> str:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                again_after = (await self._reconcile(key)).requeue_after
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something the reconcile awaited was cancelled; that is its failure, not our end.
            return self._failed(key, RuntimeError("cancelled from within"), timed_out=False)
        except Exception as error:  # noqa: BLE001 - `_failed` logs it
            return self._failed(key, error, timed_out=limit.expired())
        self._queue.forget(key)
        if again_after is None:
            return "success"
        self._queue.add_after(key, again_after, lane=LATER)
        return "requeue_after"

    def _failed(self, key: K, error: Exception, *, timed_out: bool) -> str:
        """Log it, bring the key back later, and name the outcome."""
        if isinstance(error, TerminalError):
            self._queue.forget(key)
            log.error("%s: %s: %s", self._name, key, error)
            return "terminal_error"
        asked = error.retry_after if isinstance(error, ApiError) else None
        wait = self._queue.add_rate_limited(key, lane=LATER, at_least=min(asked or 0.0, LONGEST_WAIT))
        if isinstance(error, ApiError):
            level = logging.DEBUG if isinstance(error, Conflict) else logging.WARNING
            log.log(level, "%s: %s: %s; again in %.3f s", self._name, key, error, wait)
            return "error"
        if timed_out and isinstance(error, TimeoutError):
            log.error("%s: %s: not done in %.0f s", self._name, key, self._timeout)
            return "timeout"
        log.error("%s: %s: unexpected", self._name, key, exc_info=error)
        return "panic"


async def _stop(workers: list[asyncio.Task[None]], grace: float) -> None:
    """Wait for the workers, cancel those that need longer, and wait for these too."""
    try:
        await asyncio.wait(workers, timeout=grace)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
