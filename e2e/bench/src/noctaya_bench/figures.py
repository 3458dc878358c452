"""Small statistics: medians of rounds, paired ratios, percentiles, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

__all__ = ["median", "paired_ratio", "percentile", "write_number"]


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median of the ratios round by round: rounds measured next to each other share the machine's mood."""
    if len(ours) != len(theirs) or not ours:
        raise ValueError(
            f"paired ratios need as many rounds on both sides, got {len(ours)} and {len(theirs)}"
        )
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile; `share` is 0..100."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * share // 100))
    return ordered[min(len(ordered), int(rank)) - 1]


def write_number(value: float) -> str:
    """Three significant digits at most, thousands separated: 0.123, 4.56, 78.9, 1,234."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}"
