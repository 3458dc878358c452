"""The watchdog: an exchange that brings fewer bytes than it must is cut, whatever it is waiting for.

One thread looks at every open exchange. Only the time spent waiting for the network counts: a disk that is
slow is not the server's fault. Cutting means shutting the socket down, which wakes a blocked read, also one
that gets a byte now and then and would therefore never time out; aborting the run cuts all of them.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Exchange:
    """One request and its response, as the watchdog sees it. Written by its worker, read by the watchdog."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._mark = 0
        self._spent = 0.0
        self._waiting_since: float | None = None
        self.received = 0
        """Bytes of bodies so far."""
        self.stalled = False
        """Whether the watchdog cut it."""

    def attach(self, connected: socket.socket | None) -> None:
        """This is the socket to cut; None while there is none."""
        with self._lock:
            self._socket = connected

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The body waits for the network."""
        with self._lock:
            self._waiting_since = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._spent += self._clock() - self._waiting_since
                self._waiting_since = None

    def is_too_slow(self, *, window: float, least: float) -> bool:
        """Whether the last `window` seconds of waiting brought fewer than `least` bytes."""
        with self._lock:
            now = self._clock()
            since = self._waiting_since
            if self._spent + (now - since if since is not None else 0.0) < window:
                return False
            slow = self.received - self._mark < least
            self._mark = self.received
            self._spent = 0.0
            self._waiting_since = None if since is None else now
            return slow

    def cut(self, *, stalled: bool) -> None:
        """Wake whoever reads or writes the socket; its connection is done for."""
        with self._lock:
            self.stalled = self.stalled or stalled
            if self._socket is None:
                return
            # Through a second descriptor: a TLS socket's own shutdown may not be called from another thread.
            with suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._socket.fileno())) as twin:
                twin.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """Looks at all exchanges from a thread of its own, from `start` to `stop`.

    Args:
        window: seconds of waiting after which the rate is judged.
        min_rate: bytes a second an exchange must reach over the window.
        on_stall: called for each exchange that is cut.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        window: float,
        min_rate: float,
        on_stall: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._window = window
        self._least = window * min_rate
        self._on_stall = on_stall
        self._clock = clock
        self._lock = threading.Lock()
        self._exchanges: set[Exchange] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()
        self._thread.join()

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        """A watched exchange for the length of the body."""
        exchange = Exchange(clock=self._clock)
        with self._lock:
            self._exchanges.add(exchange)
        try:
            yield exchange
        finally:
            with self._lock:
                self._exchanges.discard(exchange)

    def cut_all(self) -> None:
        """Wake every exchange: the run has ended."""
        for exchange in self._open():
            exchange.cut(stalled=False)

    def look(self) -> None:
        """Cut what is too slow now."""
        for exchange in self._open():
            if exchange.is_too_slow(window=self._window, least=self._least):
                exchange.cut(stalled=True)
                self._on_stall()

    def _open(self) -> list[Exchange]:
        with self._lock:
            return list(self._exchanges)

    def _look_on(self) -> None:
        while not self._ended.wait(min(1.0, self._window / 10)):
            self.look()
