"""Whether a series of samples grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from typing import Final

FEWEST: Final = 8
"""Samples below which nothing can be said of quarters."""
SECONDS_AN_HOUR: Final = 3600.0


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How much more the last quarter may show than the second one: the larger of both.

    The first quarter does not count: caches fill, pools grow, the allocator learns.
    """

    absolute: float
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A series in short."""

    early: float
    """Median of the second quarter."""
    late: float
    """Median of the last quarter."""
    hourly: float
    """Slope of the least-squares line without the first quarter, an hour."""

    def flat(self, bound: Bound) -> bool:
        """Whether it stays within a bound."""
        return self.late - self.early <= max(bound.absolute, bound.share * self.early)


class TooFew(ValueError):
    """There are not enough samples to say anything."""


def trend_of(samples: Sequence[tuple[float, float]]) -> Trend:
    """Of (seconds, value), in order of time. Raises TooFew."""
    if len(samples) < FEWEST:
        raise TooFew(f"{len(samples)} samples say nothing, {FEWEST} are needed")
    quarter = len(samples) // 4
    counted = samples[quarter:]
    times, values = [at for at, _ in counted], [value for _, value in counted]
    return Trend(
        early=median(values[:quarter]),
        late=median(values[-quarter:]),
        hourly=linear_regression(times, values).slope * SECONDS_AN_HOUR,
    )
