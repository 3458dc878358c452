"""What KEDA and the HorizontalPodAutoscaler it drives decide, as a pure state machine.

KEDA owns 0 <-> 1 (activation and cooldown), the autoscaler owns 1 <-> N (ceil(demand / target), with a
window that remembers higher recommendations before it scales down). Left out on purpose: the autoscaler's
10 % tolerance and its rate limits, which exist for noisy averages and large clusters and would only blur
ceil(demand / target) here.
"""

import math
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """The numbers of `spec.scaling`.

    `minimum` 0.., `maximum` >= max(1, minimum), `target` demand for each replica (>= 1), `stabilization`
    seconds (0..3600): both KEDA's cooldown before the last replica goes and the autoscaler's scale-down
    window.
    """

    minimum: int
    maximum: int
    target: int
    stabilization: float


class Scaling:
    """Wanted replicas as a function of what the ExternalScaler said so far.

    All times are seconds of one clock.
    """

    def __init__(self, policy: ScalingPolicy) -> None:
        self._policy = policy
        self._last_active: float | None = None
        self._recommendations: deque[tuple[float, int]] = deque()
        self.replicas = policy.minimum

    def pushed(self, active: bool, *, now: float) -> int:
        """StreamIsActive sent `active`. True activates at once; false is ignored, as KEDA does."""
        if active:
            self._seen_active(now)
        return self.replicas

    def polled(self, active: bool, *, demand: float, now: float) -> int:
        """IsActive and GetMetrics answered. Returns the replicas wanted from now on."""
        if active:
            self._seen_active(now)
        if self.replicas > 0:
            self.replicas = self._stabilized(demand, now=now)
        if not active and self._policy.minimum == 0 and self.replicas > 0 and self._cooled_down(now):
            self.replicas = 0
            self._recommendations.clear()
        return self.replicas

    def unavailable(self) -> int:
        """The scaler said UNAVAILABLE or can't be reached: unknown demand keeps what is there."""
        return self.replicas

    def _seen_active(self, now: float) -> None:
        self._last_active = now
        if self.replicas == 0:
            self.replicas = max(1, self._policy.minimum)

    def _cooled_down(self, now: float) -> bool:
        return self._last_active is None or now - self._last_active >= self._policy.stabilization

    def _stabilized(self, demand: float, *, now: float) -> int:
        policy = self._policy
        wanted = math.ceil(demand / policy.target)
        wanted = min(policy.maximum, max(wanted, policy.minimum, 1))
        self._recommendations.append((now, wanted))
        while self._recommendations[0][0] < now - policy.stabilization:
            self._recommendations.popleft()
        highest = max(count for _, count in self._recommendations)
        return wanted if wanted >= self.replicas else min(self.replicas, highest)
