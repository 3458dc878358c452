"""How far a run is: counted by the threads that move bytes, read by whoever asks.

The rate is that of the last seconds, so that a stall shows while it lasts; the time left follows from it. A
resumed run counts what was there already as done, and never into the rate.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum

_WINDOW = 15.0
_SAMPLE = 0.5


class State(StrEnum):
    """Where a run is."""

    STARTING = "Starting"
    WAITING = "Waiting"
    LISTING = "Listing"
    DOWNLOADING = "Downloading"
    PULLING = "Pulling"
    STAGING = "Staging"
    VERIFYING = "Verifying"
    PROMOTING = "Promoting"
    DONE = "Done"
    FAILED = "Failed"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One moment of a run, in the names of its JSON form."""

    state: str
    bytesDone: int  # noqa: N815  the wire's name
    bytesTotal: int  # noqa: N815
    bytesPerSecond: int  # noqa: N815
    currentFile: str  # noqa: N815
    etaSeconds: int | None  # noqa: N815  None while it can't be told
    attempt: int

    def as_json(self) -> dict[str, object]:
        """The JSON object of `/progress`."""
        return asdict(self)


class Progress:
    """Counts of one run; every method may be called from any thread.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = State.STARTING
        self._done = 0
        self._total = 0
        self._file = ""
        self._moving: dict[str, None] = {}
        """Files of which bytes have come and that aren't whole yet, the latest last."""
        self._attempt = 1
        self._moved = 0
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])
        self.retries = 0
        """Requests that were tried again."""
        self.stalls = 0
        """Ranges that the watchdog restarted."""

    def enter(self, state: State) -> None:
        """The run is in `state` from now on."""
        with self._lock:
            self._state = state
            self._samples = deque([(self._clock(), self._moved)])

    def plan(self, *, total: int, done: int = 0) -> None:
        """There are `total` bytes to have, of which `done` are here already."""
        with self._lock:
            self._total, self._done = total, done

    def begin_attempt(self, number: int) -> None:
        """The whole is tried for the `number`-th time in this process, from 1."""
        with self._lock:
            self._attempt = number

    def at(self, name: str) -> None:
        """`name` is the file that moves, and the only one."""
        with self._lock:
            self._moving.clear()
            self._file = name

    def add(self, count: int, name: str = "") -> None:
        """`count` more bytes have arrived, of the file `name` where several move at once."""
        with self._lock:
            if name:
                self._moving.pop(name, None)
                self._moving[name] = None
                self._file = name
            self._done += count
            self._moved += count
            now = self._clock()
            if now - self._samples[-1][0] >= _SAMPLE:
                self._samples.append((now, self._moved))

    def finished(self, name: str) -> None:
        """The file `name` is whole: it isn't the current one while another moves, or should."""
        with self._lock:
            self._moving.pop(name, None)
            self._file = next(reversed(self._moving), self._file)

    def take_back(self, count: int) -> None:
        """`count` bytes that were counted turned out to be worthless."""
        with self._lock:
            self._done = max(0, self._done - count)

    def retried(self) -> None:
        """A request is tried again."""
        with self._lock:
            self.retries += 1

    def stalled(self) -> None:
        """A range came too slowly and is asked for again."""
        with self._lock:
            self.stalls += 1

    @property
    def state(self) -> State:
        """Where the run is."""
        return self._state

    @property
    def moved(self) -> int:
        """Bytes that this process received and wrote, or read from a staging area."""
        return self._moved

    def snapshot(self) -> Snapshot:
        """This moment."""
        with self._lock:
            rate = self._rate()
            left = self._total - self._done
            known = self._total > 0 and (left <= 0 or rate >= 1)
            return Snapshot(
                state=self._state.value,
                bytesDone=self._done,
                bytesTotal=self._total,
                bytesPerSecond=int(rate),
                currentFile=self._file,
                etaSeconds=(round(left / rate) if left > 0 else 0) if known else None,
                attempt=self._attempt,
            )

    def _rate(self) -> float:
        now = self._clock()
        while len(self._samples) > 1 and now - self._samples[1][0] >= _WINDOW:
            self._samples.popleft()
        since, moved = self._samples[0]
        return (self._moved - moved) / (now - since) if now > since else 0.0
