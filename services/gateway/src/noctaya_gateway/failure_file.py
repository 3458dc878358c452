"""A file in which others say that an activation can't succeed (behaviour G9).

Whoever watches the backend's processes - the operator through a downward-API volume, or `noctaya run` -
writes the reason into NOCTAYA_ACTIVATION_FAILURE_FILE. What stood there before an activation began says
nothing about it: only a file that was written again since, and is not blank, dooms it. The file is
looked at once a second, and only while an activation is pending.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from noctaya_gateway.timers import Timer, Timers

log = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between looks, each the `stat` of one file."""
LIMIT = 1000
"""Characters of the reason that are passed on."""

_Identity = tuple[int, int, int]


class FailureFile:
    """Watches `path` between `begin` and `end`; calls `on_failure(text)` at most once in between."""

    def __init__(self, path: Path, *, timers: Timers, on_failure: Callable[[str], None]) -> None:
        self._path = path
        self._timers = timers
        self._on_failure = on_failure
        self._before: _Identity | None = None
        self._timer: Timer | None = None
        self._complained = False

    def begin(self) -> None:
        """An activation began: remember what the file looks like and watch it."""
        self.end()
        self._before = self._identity()
        self._schedule()

    def end(self) -> None:
        """The activation ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        identity = self._identity()
        if identity is not None and identity != self._before:
            self._before = identity
            text = self._read().strip()
            if text:
                self._on_failure(text[:LIMIT])
                return
        self._schedule()

    def _schedule(self) -> None:
        self._timer = self._timers.call_at(self._timers.time() + INTERVAL, self._look)

    def _identity(self) -> _Identity | None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain(error)
            return None
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size)

    def _read(self) -> str:
        try:
            return self._path.read_text("utf-8", "replace")
        except OSError as error:
            self._complain(error)
            return ""

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            log.warning(
                "activation failure file can't be read", extra={"path": str(self._path), "error": str(error)}
            )
