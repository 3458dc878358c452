"""The activation lease: demand for a model that outlives the client that asked for it (contracts 3.7,
behaviour G9).

A cold request begins an activation or renews its lease. The lease keeps demand alive until the backend
is ready - then a short grace follows, in which the retries of clients find demand still there - or
until it runs out, which is a failure.

Two bounds keep a model that never starts from holding an accelerator for ever. A lease cannot be
renewed beyond twice the activation timeout after the activation began. And after `n` failures in a row
the next lease waits 15 s * 2^(n-1), at most 5 min, during which cold requests are refused with
`activation_failed` and make no demand. The first readiness forgets it.

`Retry-After` comes from how long recent activations took, spread by a tenth either way so that refused
clients don't return together. No I/O and no task here: time comes from `Timers`, chance from `jitter`.
"""

from __future__ import annotations

import enum
import math
import random
import statistics
from collections import deque
from collections.abc import Callable

from noctaya_gateway.errors import ActivationFailed
from noctaya_gateway.timers import Timer, Timers

BACKOFF_BASE = 15.0
"""Seconds the next activation waits after the first failure."""
BACKOFF_LIMIT = 300.0
"""Longest wait in seconds after any number of failures."""
RETRY_AFTER_UNKNOWN = 10
"""Seconds advised while no activation has been observed (contracts 4.5)."""
RETRY_AFTER_LIMIT = 60
OBSERVATIONS = 8
"""How many recent activations the estimate looks at."""
RENEWALS = 2.0
"""A lease ends at the latest this many activation timeouts after its activation began."""


class Outcome(enum.StrEnum):
    """How an activation ended; the label `result` of the metric."""

    READY = "ready"
    EXPIRED = "expired"
    FAILED = "failed"


class Activation:
    """One service's activation state; `timeout` and `grace` in seconds, both from the settings.

    `excused` says that a backend can't come yet and why is known: an activation that runs out then is no
    failure that the next one would have to wait for. `called_off` says that none is wanted now: the same goes
    for an activation that is doomed then.
    """

    def __init__(
        self,
        *,
        timers: Timers,
        timeout: float,
        grace: float,
        is_ready: Callable[[], bool],
        excused: Callable[[], bool] = lambda: False,
        called_off: Callable[[], bool] = lambda: False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.timeout = timeout
        self.failures = 0
        self._timers = timers
        self._grace = grace
        self._is_ready = is_ready
        self._excused = excused
        self._called_off = called_off
        self._jitter = jitter
        self._started: float | None = None
        self._deadline = 0.0
        self._grace_until = 0.0
        self._backoff_until = 0.0
        self._last_failure = ""
        self._durations: deque[float] = deque(maxlen=OBSERVATIONS)
        self._timer: Timer | None = None
        self._on_change: list[Callable[[], None]] = []
        self._on_begin: list[Callable[[], None]] = []
        self._on_end: list[Callable[[Outcome, str], None]] = []

    def subscribe(
        self,
        *,
        change: Callable[[], None] | None = None,
        begin: Callable[[], None] | None = None,
        end: Callable[[Outcome, str], None] | None = None,
    ) -> None:
        """Be told: demand may have changed; an activation began; one ended (outcome, and why if it
        failed).
        """
        if change is not None:
            self._on_change.append(change)
        if begin is not None:
            self._on_begin.append(begin)
        if end is not None:
            self._on_end.append(end)

    @property
    def pending(self) -> bool:
        """True while a lease is held: a backend is wanted and none is ready yet."""
        return self._started is not None

    @property
    def in_grace(self) -> bool:
        """True in the short time after readiness in which demand is kept for retrying clients."""
        return self._timers.time() < self._grace_until

    @property
    def holds_demand(self) -> bool:
        """True when lease or grace make demand of their own."""
        return self._started is not None or self.in_grace

    @property
    def backoff_remaining(self) -> float:
        """Seconds until a new activation may begin; 0 when it may."""
        return max(0.0, self._backoff_until - self._timers.time())

    @property
    def elapsed(self) -> float:
        """Seconds since the pending activation began; 0 when none is."""
        return 0.0 if self._started is None else self._timers.time() - self._started

    def begin(self) -> None:
        """Begin an activation or renew its lease; ActivationFailed while the back-off lasts; nothing when
        ready.
        """
        if self._is_ready():
            return
        now = self._timers.time()
        if self._started is None:
            if now < self._backoff_until:
                raise ActivationFailed(self._refusal(), retry_seconds=self.retry_after())
            self._started = now
            self._deadline = now + self.timeout
            self._schedule(self._deadline)
            for begun in self._on_begin:
                begun()
            self._changed()
        else:
            self._deadline = min(now + self.timeout, self._started + RENEWALS * self.timeout)

    def became_ready(self) -> None:
        """A backend is ready: the lease ends well, grace begins, failures are forgotten."""
        self.failures = 0
        self._backoff_until = 0.0
        self._last_failure = ""
        if self._started is None:
            return
        now = self._timers.time()
        self._durations.append(now - self._started)
        self._grace_until = now + self._grace
        self._end(Outcome.READY, "")

    def doom(self, why: str) -> None:
        """The pending activation can't succeed: it fails now; without one nothing happens."""
        if self._started is None:
            return
        if self._called_off():
            self._end(Outcome.FAILED, why)
        else:
            self._fail(Outcome.FAILED, why)

    def retry_after(self) -> int:
        """Whole seconds, 1 to 60, after which another try makes sense."""
        backoff = self.backoff_remaining
        if backoff > 0:
            return _whole(backoff * (1.0 + 0.1 * self._jitter()))
        if self._durations:
            typical = statistics.median(self._durations)
            remaining = max(typical - self.elapsed, typical / 4)
        else:
            remaining = RETRY_AFTER_UNKNOWN
        return _whole(remaining * (0.9 + 0.2 * self._jitter()))

    def close(self) -> None:
        """Stop the timer; the object is not used afterwards."""
        self._cancel()

    def _tick(self) -> None:
        self._timer = None
        now = self._timers.time()
        if self._started is None:
            if now < self._grace_until:
                self._schedule(self._grace_until)
            else:
                self._changed()
        elif now < self._deadline:
            self._schedule(self._deadline)
        else:
            why = f"no backend became ready within {self.elapsed:.0f} seconds"
            if self._excused():
                self._end(Outcome.EXPIRED, why)
            else:
                self._fail(Outcome.EXPIRED, why)

    def _fail(self, outcome: Outcome, why: str) -> None:
        self.failures += 1
        wait = min(BACKOFF_BASE * 2.0 ** min(self.failures - 1, 16), BACKOFF_LIMIT)
        self._backoff_until = self._timers.time() + wait
        self._last_failure = why
        self._end(outcome, why)

    def _end(self, outcome: Outcome, why: str) -> None:
        self._started = None
        self._cancel()
        if self.in_grace:
            self._schedule(self._grace_until)
        for ended in self._on_end:
            ended(outcome, why)
        self._changed()

    def _refusal(self) -> str:
        attempts = "attempt" if self.failures == 1 else f"{self.failures} attempts"
        return f"The model could not be started (last {attempts} failed: {self._last_failure})."

    def _changed(self) -> None:
        for changed in self._on_change:
            changed()

    def _schedule(self, when: float) -> None:
        self._cancel()
        self._timer = self._timers.call_at(when, self._tick)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _whole(seconds: float) -> int:
    return min(max(1, math.ceil(seconds)), RETRY_AFTER_LIMIT)
