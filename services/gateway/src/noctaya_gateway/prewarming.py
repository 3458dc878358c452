"""A file that says, while it holds text, why the service is kept at no replicas: the weights of the model are
still being downloaded, or somebody has put it to sleep.

The operator keeps it there for that time, so a cold request can't be served before it is over. It writes when
that is, and the gateway decides by it: a request that can wait so long is held as ever, one that can't is
refused at once with an honest `Retry-After`; so is one for a sleep without an end. The file is looked at when
a cold request asks, at most ten times a second.
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

from noctaya_gateway.errors import Asleep, Prewarming
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


@dataclass(frozen=True)
class Notice:
    """What is known of the download, or of the sleep."""

    message: str
    left: float | None
    """Seconds until it is expected to be over, not below 0; None when nobody knows."""
    asleep: bool = False
    """Whether somebody wants it so: it is over when they say so, not when something is done."""

    def outlasts(self, seconds: float) -> bool:
        """Whether it is known that who waits so long waits in vain."""
        return self.asleep if self.left is None else self.left > seconds


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
        self._asleep = False
        self._complained = False

    def notice(self, *, fresh: bool = False) -> Notice | None:
        """What is known of what goes on, None when nothing does. `fresh`: by a look of this moment."""
        if self._path is None:
            return None
        if fresh or self._timers.time() - self._looked >= INTERVAL:
            self._looked = self._timers.time()
            self._message, self._ready_at, self._asleep = parse_notice(self._read(self._path))
        if not self._message:
            return None
        left = None if self._ready_at is None else max(0.0, self._ready_at - self._now())
        return Notice(self._message, left, self._asleep)

    @property
    def sleeps(self) -> bool:
        """Whether the service is put to sleep, as of this moment."""
        notice = self.notice(fresh=True)
        return notice is not None and notice.asleep

    def refusal(self, notice: Notice, *, waited: float = 0.0) -> Prewarming | Asleep:
        """The refusal of a request that can't wait for the end."""
        seconds = RETRY_UNKNOWN if notice.left is None else notice.left * (1.0 + 0.1 * self._jitter())
        before = f"The model did not become ready within {round(waited, 1):g} seconds: " if waited else ""
        about = "" if notice.left is None else f", for about {_spoken(notice.left)} more"
        text = f"{before}{notice.message}{about}."
        kind = Asleep if notice.asleep else Prewarming
        return kind(text[0].upper() + text[1:], retry_seconds=min(max(1, math.ceil(seconds)), RETRY_LIMIT))

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


def parse_notice(text: str) -> tuple[str, float | None, bool]:
    """Message, empty when nothing goes on; Unix time of the expected end; whether it is a sleep.

    Text that is not the expected JSON is a message itself: that something goes on is clear from it.
    """
    if not text:
        return "", None, False
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text[:LIMIT], None, False
    if not isinstance(values, dict):
        return text[:LIMIT], None, False
    message, ready = values.get("message"), values.get("readyAt")
    asleep = values.get("state") == names.NOTICE_ASLEEP
    default = DEFAULT_ASLEEP if asleep else DEFAULT_MESSAGE
    told = message[:LIMIT] if isinstance(message, str) and message else default
    try:
        return told, datetime.fromisoformat(ready).timestamp() if isinstance(ready, str) else None, asleep
    except (ValueError, OverflowError, OSError):
        return told, None, asleep


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, math.ceil(seconds))} seconds"
    return f"{math.ceil(seconds / 60)} minutes" if seconds < 5400 else f"{math.ceil(seconds / 3600)} hours"
