"""Limits of a client key: requests a minute, and requests at a time (decision 0021).

A limit applies before a request's body is read, so before it takes a slot or wakes a model. Keys with the
same name share one allowance: a client that rotates its key does not get twice as much. Requests a minute
are a bucket that holds one minute's worth and is refilled evenly; a refused request takes nothing from it.
Each gateway counts by itself.

No I/O here; time comes from `clock`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from noctaya_gateway.errors import ConcurrencyLimitExceeded, Headers, RateLimitExceeded
from noctaya_gateway.keys import ClientKey, KeyLimits

MINUTE = 60.0
RETRY_LIMIT = 60
"""Longest `Retry-After` in seconds of a refusal by a limit."""
SMOOTHING = 0.2
"""Weight of the newest request in the mean duration by which `Retry-After` is estimated."""
NAMED = 100
"""Key names that get a label of their own in metrics; the rest is counted as `other`."""
OTHER = "other"

ADMITTED, RATE, CONCURRENCY = "admitted", "rate_limited", "concurrency_limited"


class Allowance:
    """What one key name has used."""

    __slots__ = ("counts", "in_flight", "limits", "seconds", "tokens", "updated")

    def __init__(self, limits: KeyLimits, now: float) -> None:
        self.limits = limits
        self.tokens = float(limits.requests_per_minute)
        self.updated = now
        self.in_flight = 0
        self.seconds = 0.0
        """Mean duration of requests; 0 before the first ended."""
        self.counts = dict.fromkeys((ADMITTED, RATE, CONCURRENCY), 0)

    def change(self, limits: KeyLimits, now: float) -> None:
        """New limits: a lower one counts at once, a higher one is not a gift of a full bucket."""
        self.refill(now)
        had = self.limits.requests_per_minute
        self.limits = limits
        if had == 0:
            self.tokens = float(limits.requests_per_minute)
        self.tokens = min(self.tokens, float(limits.requests_per_minute))

    def refill(self, now: float) -> None:
        """Add what has grown since the last look."""
        limit = self.limits.requests_per_minute
        self.tokens = min(float(limit), self.tokens + (now - self.updated) * limit / MINUTE)
        self.updated = now


class Permit:
    """One request let in under its key's limits; give it back with `release`, as often as you like."""

    __slots__ = ("_allowance", "_began", "_clock", "lines")

    def __init__(
        self, allowance: Allowance, clock: Callable[[], float], began: float, lines: tuple[bytes, ...]
    ) -> None:
        self._allowance: Allowance | None = allowance
        self._clock = clock
        self._began = began
        self.lines = lines
        """Header lines that tell the client where it stands; empty without a limit of requests a minute."""

    def release(self) -> None:
        """The request is over."""
        allowance, self._allowance = self._allowance, None
        if allowance is None:
            return
        allowance.in_flight -= 1
        if not allowance.limits.concurrent:
            return
        took = self._clock() - self._began
        before = allowance.seconds
        allowance.seconds = took if before == 0.0 else before + SMOOTHING * (took - before)


class Limiter:
    """The allowances of all keys; `clock` in seconds, monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._allowances: dict[str, Allowance] = {}

    def enter(self, key: ClientKey) -> Permit:
        """Let a request in.

        Raises:
            ConcurrencyLimitExceeded: as many requests of this key as may are under way.
            RateLimitExceeded: this key has no request left at the moment.
        """
        now = self._clock()
        limits = key.limits
        allowance = self._allowances.get(key.name)
        if allowance is None:
            allowance = self._allowances[key.name] = Allowance(limits, now)
        elif allowance.limits is not limits and allowance.limits != limits:
            allowance.change(limits, now)
        if limits.concurrent and allowance.in_flight >= limits.concurrent:
            allowance.counts[CONCURRENCY] += 1
            # One of them ends, on average, after this part of what one takes.
            seconds = allowance.seconds / limits.concurrent
            raise ConcurrencyLimitExceeded(key.name, limits.concurrent, retry_seconds=_whole(seconds))
        lines: tuple[bytes, ...] = ()
        if limits.requests_per_minute:
            allowance.refill(now)
            if allowance.tokens < 1.0:
                allowance.counts[RATE] += 1
                seconds = (1.0 - allowance.tokens) * MINUTE / limits.requests_per_minute
                raise RateLimitExceeded(
                    key.name,
                    limits.requests_per_minute,
                    retry_seconds=_whole(seconds),
                    headers=_standing(allowance),
                )
            allowance.tokens -= 1.0
            lines = tuple(b": ".join(header) for header in _standing(allowance))
        allowance.in_flight += 1
        allowance.counts[ADMITTED] += 1
        return Permit(allowance, self._clock, now, lines)

    def keep(self, names: Iterable[str]) -> None:
        """Forget every name but these; requests under way end as they would."""
        kept = set(names)
        self._allowances = {name: each for name, each in self._allowances.items() if name in kept}

    def collect(self) -> Iterator[Metric]:
        """Metric families by key name; none while no request came with a key."""
        if not self._allowances:
            return
        requests = CounterMetricFamily(
            "noctaya_gateway_key_requests",
            "Requests by the name of their key and what the key's limits said.",
            labels=("key", "result"),
        )
        flying = GaugeMetricFamily(
            "noctaya_gateway_key_in_flight", "Requests under way by the name of their key.", labels=("key",)
        )
        counts: dict[str, dict[str, int]] = {}
        in_flight: dict[str, int] = {}
        for number, (name, allowance) in enumerate(self._allowances.items()):
            shown = name if number < NAMED else OTHER
            into = counts.setdefault(shown, {})
            for result, count in allowance.counts.items():
                into[result] = into.get(result, 0) + count
            in_flight[shown] = in_flight.get(shown, 0) + allowance.in_flight
        for name, results in counts.items():
            for result, count in results.items():
                requests.add_metric((name, result), count)
            flying.add_metric((name,), in_flight[name])
        yield requests
        yield flying


def _standing(allowance: Allowance) -> Headers:
    """Where the client stands, as OpenAI's clients know it: limit, what is left, until all is there again."""
    limit = allowance.limits.requests_per_minute
    full = (limit - allowance.tokens) * MINUTE / limit
    return (
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"%d" % int(allowance.tokens)),
        (b"x-ratelimit-reset-requests", b"%.3gs" % full if full < 10 else b"%ds" % math.ceil(full)),
    )


def _whole(seconds: float) -> int:
    return min(max(1, math.ceil(seconds)), RETRY_LIMIT)
