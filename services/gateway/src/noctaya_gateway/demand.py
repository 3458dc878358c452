"""The number KEDA sees (contracts 3.7, behaviour S4).

Effective demand = admitted requests if there are any, else 1 while an activation lease or the retry
grace lasts, else 0. `DemandMeter` computes it from its two sources and publishes it to a
`DemandSignal`; every reader - ExternalScaler, reporter, `/noctaya/queue`, metrics - sees that one
value, so `active` and the metric never disagree.

The rise from 0 is published at once: somebody is waiting for a model. Every other change is published
within `SETTLE` seconds by one timer, so that thousands of short warm requests don't turn into as many
wake-ups and reports; a reader that asks (`snapshot`) always gets the exact value.
"""

from __future__ import annotations

from noctaya_api.demand.signal import DemandSignal, DemandState

from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission
from noctaya_gateway.timers import Timer, Timers

SETTLE = 0.1
"""Seconds within which any change but the rise from 0 is published."""


class DemandMeter:
    """Effective demand of this gateway."""

    def __init__(
        self, *, admission: Admission, activation: Activation, signal: DemandSignal, timers: Timers
    ) -> None:
        self._admission = admission
        self._activation = activation
        self._signal = signal
        self._timers = timers
        self._timer: Timer | None = None
        self._was_active = False
        self.activations = 0
        """How often effective demand rose from 0 (`noctaya_gateway_activation_events_total`)."""

    @property
    def pending(self) -> int:
        """Admitted requests: held ones and those in flight."""
        return self._admission.pending

    @property
    def effective(self) -> int:
        """Demand as of now."""
        return self._admission.pending or int(self._activation.holds_demand)

    def update(self) -> None:
        """Something changed; called after every change of admission and activation."""
        active = self._admission.pending > 0 or self._activation.holds_demand
        if active and not self._was_active:
            self._was_active = True
            self.activations += 1
            self._publish()
        else:
            self._was_active = active
            if self._timer is None:
                self._timer = self._timers.call_at(self._timers.time() + SETTLE, self._settle)

    def flush(self) -> DemandState:
        """Publish the exact demand now and return it."""
        self._publish()
        return self._signal.state

    async def changed(self, after: int) -> DemandState:
        """The first published state newer than version `after`."""
        return await self._signal.changed(after)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _settle(self) -> None:
        self._timer = None
        self._publish()

    def _publish(self) -> None:
        self._signal.publish(self.effective)


class MeterSource:
    """The meter as the co-located ExternalScaler reads it."""

    def __init__(self, meter: DemandMeter) -> None:
        self._meter = meter

    def snapshot(self) -> DemandState:
        """The exact demand; never unknown, because this process is the only one that has any."""
        return self._meter.flush()

    async def changed(self, after: int) -> DemandState:
        """The first state newer than version `after`."""
        return await self._meter.changed(after)
