"""How fast a queue may be let onto one backend address (behaviour G7).

One token bucket per address: `rate` requests a second, bursts of a tenth of a second's worth (at least
one). A rate of 0 means no pacing. Buckets of addresses that are full again are forgotten, so nothing
grows with address churn.
"""

from __future__ import annotations

from noctaya_gateway.balancer import Address


class Pacer:
    """Token buckets by address; time is handed in."""

    def __init__(self, rate: float) -> None:
        if rate < 0:
            raise ValueError(f"a release rate can't be negative, got {rate}")
        self._rate = rate
        self._burst = max(1.0, rate / 10)
        self._buckets: dict[Address, tuple[float, float]] = {}

    def wait(self, address: Address, now: float) -> float:
        """Seconds until a request may be released to `address`; 0 for now."""
        if not self._rate:
            return 0.0
        tokens = self._tokens(address, now)
        # A timer may fire a few nanoseconds early: a whole token within a thousandth counts as one.
        return 0.0 if tokens >= 0.999 else (1.0 - tokens) / self._rate

    def take(self, address: Address, now: float) -> None:
        """Count a release to `address`."""
        if self._rate:
            self._buckets[address] = (max(0.0, self._tokens(address, now) - 1.0), now)

    def forget(self, address: Address) -> None:
        """Drop the bucket of an address that left."""
        self._buckets.pop(address, None)

    def _tokens(self, address: Address, now: float) -> float:
        bucket = self._buckets.get(address)
        if bucket is None:
            return self._burst
        tokens, at = bucket
        return min(self._burst, tokens + (now - at) * self._rate)
