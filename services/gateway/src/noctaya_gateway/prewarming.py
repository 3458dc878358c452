"""A file that says, while it holds text, why the service is kept at no replicas: the weights of the model are
still being downloaded, or could not be, or somebody has put it to sleep.

The operator keeps it there for that time, so a cold request can't be served before it is over. It writes when
that is, and the gateway decides by it: a request that can wait so long is held as ever, one that can't is
refused at once with an honest `Retry-After`; so is one for a sleep without an end, or when nobody knows when
the download is tried again. The file is looked at when a cold request asks, at most ten times a second.
"""

from __future__ import annotations

import json
import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from noctaya_api import names

from noctaya_gateway.activation import RETRY_AFTER_LIMIT
from noctaya_gateway.errors import ActivationFailed, Asleep, Prewarming
from noctaya_gateway.timers import Timers

log = logging.getLogger(__name__)

INTERVAL = 0.1
"""Seconds for which a look counts, and for which somebody may be refused for a reason that has just gone."""
RETRY_UNKNOWN = 30
"""Seconds advised while nobody knows how long the download takes."""
RETRY_LIMIT = 3600
LIMIT = 1000
"""Characters of the message that are passed on, and bytes of the file that are read, times eight."""
DEFAULT_MESSAGE = "the weights of the model are being downloaded"
DEFAULT_ASLEEP = "the service is put to sleep"
_DEFAULTS = {
    "": DEFAULT_MESSAGE,
    names.NOTICE_ASLEEP: DEFAULT_ASLEEP,
    names.NOTICE_FAILED: "the weights of the model could not be downloaded",
}


@dataclass(frozen=True)
class Notice:
    """What is known of the download, or of the sleep."""

    message: str
    left: float | None
    """Seconds until it is expected to be over, or tried again, not below 0; None when nobody knows."""
    state: str = ""
    """Empty for a download that goes on, else one of `names.NOTICE_*`."""

    @property
    def asleep(self) -> bool:
        """Whether somebody wants it so: it is over when they say so, not when something is done."""
        return self.state == names.NOTICE_ASLEEP

    @property
    def failed(self) -> bool:
        """Whether the download is over and brought nothing."""
        return self.state == names.NOTICE_FAILED

    def outlasts(self, seconds: float) -> bool:
        """Whether it is known that who waits so long waits in vain."""
        return bool(self.state) if self.left is None else self.left > seconds


class PrewarmingFile:
    """Reads `path`; None means that nobody downloads anything.

    `now` is the wall clock in Unix seconds, which the file's times are compared with.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        timers: Timers,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._path = path
        self._timers = timers
        self._now = now
        self._jitter = jitter
        self._looked = -math.inf
        self._message = ""
        self._ready_at: float | None = None
        self._state = ""
        self._complained = False

    def notice(self, *, fresh: bool = False) -> Notice | None:
        """What is known of what goes on, None when nothing does. `fresh`: by a look of this moment."""
        if self._path is None:
            return None
        if fresh or self._timers.time() - self._looked >= INTERVAL:
            self._looked = self._timers.time()
            self._message, self._ready_at, self._state = parse_notice(self._read(self._path))
        if not self._message:
            return None
        left = None if self._ready_at is None else max(0.0, self._ready_at - self._now())
        return Notice(self._message, left, self._state)

    @property
    def sleeps(self) -> bool:
        """Whether the service is put to sleep, as of this moment."""
        notice = self.notice(fresh=True)
        return notice is not None and notice.asleep

    def refusal(self, notice: Notice, *, waited: float = 0.0) -> Prewarming | Asleep | ActivationFailed:
        """The refusal of a request that can't wait for the end."""
        seconds = RETRY_UNKNOWN if notice.left is None else notice.left * (1.0 + 0.1 * self._jitter())
        before = f"The model did not become ready within {round(waited, 1):g} seconds: " if waited else ""
        about = "" if notice.left is None else _about(notice.left, failed=notice.failed)
        text = f"{before}{notice.message}{about}."
        text, advice = text[0].upper() + text[1:], max(1, math.ceil(seconds))
        if notice.failed:
            return ActivationFailed(text, retry_seconds=min(advice, RETRY_AFTER_LIMIT))
        kind = Asleep if notice.asleep else Prewarming
        return kind(text, retry_seconds=min(advice, RETRY_LIMIT))

    def _read(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return file.read(8 * LIMIT).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            if not self._complained:
                self._complained = True
                log.warning("prewarming file can't be read", extra={"path": str(path), "error": str(error)})
            return ""


def parse_notice(text: str) -> tuple[str, float | None, str]:
    """Message, empty when nothing goes on; Unix time of the expected end; its state, empty for a download.

    Text that is not the expected JSON is a message itself: that something goes on is clear from it.
    """
    if not text:
        return "", None, ""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text[:LIMIT], None, ""
    if not isinstance(values, dict):
        return text[:LIMIT], None, ""
    message, ready = values.get("message"), values.get("readyAt")
    state = values.get("state")
    state = state if isinstance(state, str) and state in _DEFAULTS else ""
    told = message[:LIMIT] if isinstance(message, str) and message else _DEFAULTS[state]
    try:
        return told, datetime.fromisoformat(ready).timestamp() if isinstance(ready, str) else None, state
    except (ValueError, OverflowError, OSError):
        return told, None, state


def _about(left: float, *, failed: bool) -> str:
    return (
        f"; that is tried again in about {_spoken(left)}" if failed else f", for about {_spoken(left)} more"
    )


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, math.ceil(seconds))} seconds"
    return f"{math.ceil(seconds / 60)} minutes" if seconds < 5400 else f"{math.ceil(seconds / 3600)} hours"
