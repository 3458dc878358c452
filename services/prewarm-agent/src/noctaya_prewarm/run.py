"""One run: its settings, its progress, and the ways it can be told to end before its end.

Work happens in threads that block in reads and writes. Whoever wants them to end (a signal, the deadline, a
lease that was lost) aborts the run; work looks at `check` between two blocks, sleeps only in `pause`, and
what can block for longer registers a way to be woken.
"""

import math
import threading
import time
from collections.abc import Callable

from noctaya_prewarm.errors import DeadlineExceeded, PrewarmError
from noctaya_prewarm.progress import Progress
from noctaya_prewarm.settings import AgentSettings


class Run:
    """One run of a command.

    Args:
        settings: the checked environment.
        limited: whether the deadline of the settings, counted from now, ends the run.
        clock: monotonic seconds.
    """

    def __init__(
        self, settings: AgentSettings, *, limited: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.progress = Progress(clock=clock)
        self.revision = ""
        """What the source's revision resolved to, once it is known."""
        self.digest = ""
        """Digest of an OCI artifact, once it is known."""
        self._deadline = clock() + settings.deadline if limited else math.inf
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._error: PrewarmError | None = None
        self._wakers: set[Callable[[], None]] = set()

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, not below 0; infinite without one."""
        return max(0.0, self._deadline - self.clock())

    @property
    def error(self) -> PrewarmError | None:
        """Why the run was aborted, or None."""
        return self._error

    def abort(self, error: PrewarmError) -> None:
        """End the run with `error`; the first one counts."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            wakers = list(self._wakers)
        self._ended.set()
        for wake in wakers:
            wake()

    def check(self) -> None:
        """Go on, or not.

        Raises:
            PrewarmError: the run was aborted, or its deadline has passed.
        """
        if self._error is not None:
            raise self._error
        if self.clock() >= self._deadline:
            raise DeadlineExceeded(self._too_late())

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run. Errors as `check`."""
        self._ended.wait(min(max(0.0, seconds), self.remaining, threading.TIMEOUT_MAX))
        self.check()

    def expire(self) -> None:
        """End the run because its deadline has passed."""
        self.abort(DeadlineExceeded(self._too_late()))

    def add_waker(self, wake: Callable[[], None]) -> None:
        """Call `wake` when the run is aborted, from whatever thread aborts it; at once if it was already."""
        with self._lock:
            self._wakers.add(wake)
            aborted = self._error is not None
        if aborted:
            wake()

    def remove_waker(self, wake: Callable[[], None]) -> None:
        """Forget `wake`."""
        with self._lock:
            self._wakers.discard(wake)

    def _too_late(self) -> str:
        now = self.progress.snapshot()
        return (
            f"not done after {self.settings.deadline:g} s ({now.bytesDone} of {now.bytesTotal} bytes are "
            "here and stay); raise NOCTAYA_PREWARM_DEADLINE or look for what slows the source down"
        )
