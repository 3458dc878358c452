"""The wall clock of the API server, for when ours is wrong.

Times of Pods, conditions and Events are the cluster's. What the operator adds to them has to be so too: by a
clock that is a minute ahead, what gateways tell of a cold start would seem to have been after its end. Every
answer of the API server has its time, in whole seconds; ours counts until it is off by more than that, and
the time that an answer may take, explain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from noctaya_operator.kube.transport import RequestDone

log = logging.getLogger(__name__)

TOLERANCE: Final = timedelta(seconds=2)
"""By which an estimate may be off, so that a clock which is right is left alone; beside it half of what the
answer took, which may have been made at any time since it was asked for."""
HALF_A_SECOND: Final = timedelta(milliseconds=500)


class ServerClock:
    """Tells the API server's time.

    Args:
        own: this machine's wall clock.
    """

    def __init__(self, *, own: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._own = own
        self._behind = timedelta(0)

    def heard(self, done: RequestDone) -> None:
        """An answer of the API server has begun just now."""
        if (told := _time(done.date)) is None:
            return
        unsure = timedelta(seconds=done.seconds / 2)
        behind = told + HALF_A_SECOND + unsure - self._own()
        if abs(behind - self._behind) <= TOLERANCE + unsure:
            return
        self._behind = behind if abs(behind) > TOLERANCE + unsure else timedelta(0)
        if self._behind:
            log.warning(
                "our clock is wrong by the API server's, whose time is used",
                extra={"seconds_ahead": round(-self._behind.total_seconds(), 1)},
            )
        else:
            log.info("our clock is right again")

    def now(self) -> datetime:
        """The API server's time; ours as long as that is right, or nothing was heard yet."""
        return self._own() + self._behind


def _time(date: str) -> datetime | None:
    """A moment of an HTTP date; None for anything else."""
    try:
        told = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    return told if told.tzinfo is not None else None
