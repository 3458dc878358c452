"""The aggregate: a ledger of reports, published as one signal that KEDA's calls read.

`demand` and `active` come from one versioned state, so the stream and the metric can't disagree. The state is
unknown until the ledger's total can be relied on after a start: a restarted scaler must not tell KEDA that a
busy service is idle.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from noctaya_api.demand.ledger import DemandLedger, Recorded
from noctaya_api.demand.report import DemandReport
from noctaya_api.demand.signal import DemandSignal, DemandState

SWEEP: Final = 1.0
"""Seconds between looks for expired members while nobody asks or reports (contracts 4.5)."""

logger = logging.getLogger(__name__)


class Aggregate:
    """A DemandSource over the ledger.

    Args:
        ledger: the reports.
        clock: the ledger's clock, monotonic seconds.
        sweep: seconds between sweeps.
    """

    def __init__(self, ledger: DemandLedger, *, clock: Callable[[], float], sweep: float = SWEEP) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sweep = sweep
        self._signal = DemandSignal()
        self._known = asyncio.Event()

    def record(self, report: DemandReport) -> Recorded:
        """Take up a report and publish the new total at once."""
        recorded = self._ledger.record(report)
        self._publish()
        return recorded

    def snapshot(self) -> DemandState | None:
        """The state now, expired members left out; None while it is unknown."""
        self._publish()
        return self._signal.state if self._known.is_set() else None

    async def changed(self, after: int) -> DemandState:
        """Wait until the state is known and its version above `after`."""
        await self._known.wait()
        return await self._signal.changed(after)

    async def sweep(self) -> None:
        """Expire silent members and notice the end of the unknown state, until cancelled."""
        while True:
            pause = self._sweep
            if not self._known.is_set():
                pause = min(pause, max(0.0, self._ledger.known_at - self._clock()))
            await asyncio.sleep(pause)
            self._publish()

    @property
    def known(self) -> bool:
        """Whether the total can be relied on."""
        return self._ledger.known

    @property
    def total(self) -> int:
        """The sum over live members, whether or not it can be relied on yet."""
        return self._ledger.total()

    @property
    def members(self) -> int:
        """Live members."""
        return self._ledger.members

    @property
    def expired(self) -> int:
        """Members expired since the start."""
        return self._ledger.expired

    def _publish(self) -> None:
        self._signal.publish(self._ledger.total())
        if not self._known.is_set() and self._ledger.known:
            self._known.set()
            logger.info(
                "demand is known", extra={"demand": self._ledger.total(), "members": self._ledger.members}
            )
