"""The latest demand, with a version, for any number of readers that wait for a change.

Readers never see a queue of old values: one that was busy gets the newest state and no more. That is all KEDA
and the reporter need, and it keeps memory flat whatever the rate of changes.
"""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemandState:
    """One snapshot. `active` and the metric a scaler reports both come from it, so they can't disagree."""

    demand: int
    """Requests queued or in flight, or 1 for a lease; never negative."""
    version: int
    """Grows by one with each change of demand."""

    @property
    def active(self) -> bool:
        """Whether KEDA shall run the backend at all."""
        return self.demand > 0


class DemandSignal:
    """Versioned latest value for one event loop; not for use from other threads."""

    def __init__(self, initial: int = 0) -> None:
        self._state = DemandState(_checked(initial), 0)
        self._waiters: set[asyncio.Future[None]] = set()

    def publish(self, demand: int) -> None:
        """Make `demand` the latest value and wake every waiter; without effect when it is so already.

        Raises:
            ValueError: `demand` is negative.
        """
        if demand == self._state.demand:
            return
        self._state = DemandState(_checked(demand), self._state.version + 1)
        if self._waiters:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()

    @property
    def state(self) -> DemandState:
        """The latest state."""
        return self._state

    def snapshot(self) -> DemandState:
        """The same as `state`, under the name by which the ExternalScaler asks its source."""
        return self._state

    async def changed(self, after: int) -> DemandState:
        """The latest state as soon as its version is above `after`; at once when it is already.

        Start with -1 to get the current state, then pass the version last seen. Cancelling is safe and leaves
        nothing behind.
        """
        while self._state.version <= after:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        return self._state


def _checked(demand: int) -> int:
    if demand < 0:
        raise ValueError(f"demand can't be negative, got {demand}")
    return demand
