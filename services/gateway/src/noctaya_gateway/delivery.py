"""Whether the demand of this gateway reaches whoever scales the backend (behaviour G12).

A cold request is admitted in good faith that somebody will start a model. When the aggregate scaler
can't be reached, or KEDA does not ask the co-located scaler, that request waits in vain; this must be
visible within seconds in a metric, in `/readyz` and in the log. `Delivery` is told what was handed over
and when; `watch` writes the log.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

log = logging.getLogger(__name__)

SCALER_PATIENCE = 6.0
"""Co-located scaler: seconds KEDA may stay silent, its polling interval of 5 and a little (contracts 4.5)."""
WATCH_INTERVAL = 1.0
TOLD_LATELY = 6.0
"""Seconds for which a hand-over counts as recent: three beats of the reporter."""
REMIND_INTERVAL = 10.0
"""Seconds between log lines while demand stays undelivered."""


class Delivery:
    """Tracks the hand-over of demand.

    Args:
        clock: monotonic seconds.
        demand: the effective demand now.
        channel: who is to be told, for messages.
        patience: seconds the receiver may stay silent before demand counts as undelivered; 0 when
            attempts that fail are reported by `failed`.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        demand: Callable[[], int],
        channel: str,
        patience: float = 0.0,
    ) -> None:
        self.channel = channel
        self.last_error = ""
        self._clock = clock
        self._demand = demand
        self._patience = patience
        self._streams = 0
        self._told_at = -math.inf
        self._failed_at: float | None = None
        self._demand_since: float | None = None

    def told(self) -> None:
        """The current demand was handed over."""
        self._told_at = self._clock()
        self._failed_at = None
        self.last_error = ""

    def failed(self, error: str) -> None:
        """An attempt to hand it over failed."""
        self.last_error = error
        if self._failed_at is None:
            self._failed_at = self._clock()

    def streams(self, count: int) -> None:
        """How many open streams push to the receiver; one of them is enough."""
        self._streams = count
        self._told_at = self._clock()

    @property
    def undelivered_seconds(self) -> float:
        """How long there has been demand that nobody was told of; 0 when all is well."""
        now = self._clock()
        if self._demand() == 0:
            self._demand_since = None
            return 0.0
        if self._demand_since is None:
            self._demand_since = now
        if self._patience:
            if self._streams:
                return 0.0
            silent = now - max(self._demand_since, self._told_at)
            return silent if silent >= self._patience else 0.0
        return 0.0 if self._failed_at is None else now - max(self._demand_since, self._failed_at)

    @property
    def failing_seconds(self) -> float:
        """How long the way to the receiver has been broken, with or without demand; 0 when it is not known
        to be.
        """
        return self.undelivered_seconds if self._failed_at is None else self._clock() - self._failed_at

    @property
    def delivered(self) -> bool | None:
        """Whether the receiver knows the demand of now; None while it was not told and need not be."""
        if self.failing_seconds > 0:
            return False
        if self._streams or self._clock() - self._told_at < max(self._patience, TOLD_LATELY):
            return True
        return None


async def watch(delivery: Delivery) -> None:
    """Log when the way to the receiver breaks, again every ten seconds while it is, and once when it
    heals.
    """
    loop = asyncio.get_running_loop()
    warned_at: float | None = None
    while True:
        await asyncio.sleep(WATCH_INTERVAL)
        seconds = delivery.failing_seconds
        if seconds > 0:
            if warned_at is None or loop.time() - warned_at >= REMIND_INTERVAL:
                warned_at = loop.time()
                _warn(delivery, seconds)
        elif warned_at is not None:
            warned_at = None
            log.info("demand is delivered again", extra={"channel": delivery.channel})


def _warn(delivery: Delivery, seconds: float) -> None:
    details = {"channel": delivery.channel, "seconds": round(seconds, 1), "error": delivery.last_error}
    if delivery.undelivered_seconds > 0:
        log.error("demand is not delivered; cold requests will wait in vain", extra=details)
    else:
        log.warning("demand could not be delivered if there were any", extra=details)
