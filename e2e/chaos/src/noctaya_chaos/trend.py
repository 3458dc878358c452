"""Whether a series of samples grows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from typing import Final

FEWEST: Final = 8
"""Samples below which nothing can be said of quarters."""
SECONDS_AN_HOUR: Final = 3600.0
AT_ONCE: Final = 0.8
"""Share of a growth that has to come to pass in one half of the time to count as a step."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How much more the last quarter may show than the second one: the larger of both.

    The first quarter does not count: caches fill, pools grow, the allocator learns.
    """

    absolute: float
    share: float = 0.0
    step: float = 1.0
    """Times as much is allowed to what grew at once and then stood still, as memory does when an allocator
    takes another piece; what leaks goes on."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A series in short."""

    early: float
    """Median of the second quarter."""
    middle: float
    """Median of the third quarter."""
    late: float
    """Median of the last quarter."""
    hourly: float
    """Slope of the least-squares line without the first quarter, an hour."""

    def flat(self, bound: Bound, *, slower: float = 1.0) -> bool:
        """Whether it stays within a bound.

        Args:
            bound: how much it may grow.
            slower: how many times slower the machine itself became meanwhile, of which this has its share.
        """
        expected = self.early * slower
        allowed = max(bound.absolute, bound.share * expected)
        grown = self.late - expected
        return grown <= allowed * (bound.step if self._at_once else 1.0)

    @property
    def _at_once(self) -> bool:
        halves = (self.middle - self.early, self.late - self.middle)
        return max(halves) >= AT_ONCE * (self.late - self.early)


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
        middle=median(values[quarter : 2 * quarter]),
        late=median(values[-quarter:]),
        hourly=linear_regression(times, values).slope * SECONDS_AN_HOUR,
    )
