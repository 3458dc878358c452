"""Trying again: which failures deserve it, how long to wait, and when to give up.

Pauses double from half a second up to a cap, with jitter, so that many agents don't come back as one. What a
server asks for (Retry-After) is waited for in full, unless it is longer than the run is willing to fail.
"""

import email.utils
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from noctaya_prewarm.errors import NetworkFault
from noctaya_prewarm.run import Run

_FIRST = 0.5
_RATE_LIMIT = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,6})\b")
T = TypeVar("T")


class Retryable(Exception):
    """A request failed in a way that may pass.

    Args:
        message: what happened, for people.
        after: seconds the server asks to wait, or None.
        at_once: no pause is due, e.g. for a signed link that has expired.
    """

    def __init__(self, message: str, *, after: float | None = None, at_once: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.at_once = at_once


class Patience:
    """The memory of one request's failures in a row; `good` clears it.

    Args:
        run: the run, with the limits.
        sleep: pauses for seconds, and raises when work must end; the run's own pause without one.
        jitter: a number from 0 to 1.
    """

    def __init__(
        self,
        run: Run,
        *,
        sleep: Callable[[float], None] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._run = run
        self._sleep = run.pause if sleep is None else sleep
        self._jitter = jitter
        self._failures = 0
        self._since = 0.0

    def good(self) -> None:
        """There was progress."""
        self._failures = 0

    def bad(self, failure: Retryable) -> None:
        """Wait as is due after a failure.

        Raises:
            NetworkFault: it has failed for too long, or the server asks to wait longer than that.
            PrewarmError: the run was aborted.
        """
        run = self._run
        now = run.clock()
        if self._failures == 0:
            self._since = now
        self._failures += 1
        run.progress.retried()
        limit = run.settings.retry_limit
        pause = 0.0 if failure.at_once and self._failures == 1 else self._pause()
        if failure.after is not None:
            if failure.after > limit:
                raise NetworkFault(
                    f"{failure}; the server asks to come back in {failure.after:.0f} s, longer than this run "
                    "waits (NOCTAYA_PREWARM_RETRY_LIMIT)"
                ) from failure
            pause = max(pause, failure.after)
        elif now + pause - self._since > limit:
            raise NetworkFault(
                f"{failure}; that is failure {self._failures} in a row, for {now - self._since:.0f} s"
            ) from failure
        self._sleep(pause)

    def _pause(self) -> float:
        ceiling: float = min(self._run.settings.max_backoff, _FIRST * 2 ** min(self._failures - 1, 20))
        return ceiling * (0.5 + self._jitter() / 2)


def persist(run: Run, act: Callable[[], T]) -> T:
    """Call `act` until it succeeds. Raises what it raises other than Retryable, and as `Patience.bad`."""
    patience = Patience(run)
    while True:
        run.check()
        try:
            return act()
        except Retryable as failure:
            patience.bad(failure)


def asked_pause(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that a response asks to wait: Retry-After as seconds or date, or an exhausted RateLimit.

    Args:
        headers: names in lower case.
        now: seconds since 1970, for dates.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if text:
        try:
            moment = email.utils.parsedate_to_datetime(text)
        except ValueError:
            moment = None
        if moment is not None:
            return max(0.0, moment.timestamp() - (time.time() if now is None else now))
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None
