"""What a soak came to: each series with its slope, for the terminal and for docs/reliability.md. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import Final

from noctaya_chaos.load import OK, Outcome
from noctaya_chaos.trend import FEWEST, Bound, Trend, trend_of

MEMORY: Final = "MiB"
FILES: Final = "files"
LATENCY: Final = "ms"
BOUNDS: Final = {
    MEMORY: Bound(absolute=2.0, share=0.03, step=4.0),
    FILES: Bound(absolute=3.0),
    LATENCY: Bound(absolute=2.0, share=0.25),
}
"""Open files move with the connections of the moment; latency with the other load of the machine."""
REFERENCE: Final = "backend asked directly"
"""Its latency is that of the machine and of the client; what lies between is ours."""
BEGIN: Final = "<!-- soak: begin (python -m noctaya_chaos.soak --write docs/reliability.md) -->"
END: Final = "<!-- soak: end -->"

Samples = Sequence[tuple[float, float]]
Series = Mapping[tuple[str, str], Samples]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One series.

    Attributes:
        what: in words.
        unit: of BOUNDS.
        trend: of the series.
        slower: how many times slower the machine became; latency has its share of it.
    """

    what: str
    unit: str
    trend: Trend
    slower: float = 1.0

    @property
    def flat(self) -> bool:
        """Whether it stays within its bound; the machine's own latency is nobody's fault."""
        slower = self.slower if self.unit == LATENCY else 1.0
        return self.what == REFERENCE or self.trend.flat(BOUNDS[self.unit], slower=slower)

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.what == REFERENCE:
            return "the machine's"
        return "flat" if self.flat else "GROWS"

    def __str__(self) -> str:
        trend = self.trend
        return (
            f"{self.what:40} {trend.early:8.1f} -> {trend.late:8.1f} {self.unit:5} "
            f"{trend.hourly:+8.2f} an hour  {self.verdict}"
        )

    @property
    def row(self) -> str:
        """Of a Markdown table."""
        trend = self.trend
        return (
            f"| {self.what} | {trend.early:.1f} {self.unit} | {trend.late:.1f} {self.unit} | "
            f"{trend.hourly:+.2f} | {self.verdict} |\n"
        )


@dataclass(frozen=True, kw_only=True)
class Account:
    """The whole soak.

    Attributes:
        minutes: that it went on.
        planned: minutes that it was to go on.
        outcomes: of the load.
        series: (seconds, value) of each (what, unit).
        loads: the machine's load averages over a minute, sampled.
        processors: of the machine.
        broken: what ended or went wrong, besides requests.
    """

    minutes: float
    planned: float
    outcomes: Sequence[Outcome]
    series: Series
    loads: Sequence[float]
    processors: int
    broken: Sequence[str] = ()

    @property
    def failures(self) -> list[str]:
        """What went wrong, requests included."""
        failed = Counter((each.kind, each.result) for each in self.outcomes if each.result != OK)
        told = [f"{count} {kind}: {result}" for (kind, result), count in sorted(failed.items())]
        return [*self.broken, *told]

    @property
    def findings(self) -> list[Finding]:
        """The series long enough to say something."""
        trends = {name: trend_of(each) for name, each in self.series.items() if len(each) >= FEWEST}
        reference = trends.get((REFERENCE, LATENCY))
        slower = max(1.0, reference.late / reference.early) if reference is not None else 1.0
        return [
            Finding(what=what, unit=unit, trend=trend, slower=slower)
            for (what, unit), trend in trends.items()
        ]

    @property
    def cut_short(self) -> bool:
        """Whether somebody ended it before its time."""
        return not self.broken and self.minutes < self.planned * 0.99

    @property
    def held(self) -> bool:
        """Whether it went on to its end, with everything flat and nothing failed."""
        findings = self.findings
        flat = all(finding.flat for finding in findings)
        return bool(findings) and flat and not self.failures and not self.cut_short

    @property
    def summary(self) -> str:
        """In a line."""
        counts = Counter(each.kind for each in self.outcomes)
        load = "load unknown"
        if self.loads:
            load = f"load {min(self.loads):.1f} to {max(self.loads):.1f}, median {median(self.loads):.1f}"
        short = f" of {self.planned:.0f}, cut short" if self.cut_short else ""
        return (
            f"{self.minutes:.0f} minutes{short}: {counts['json']} answers, {counts['stream']} streams, "
            f"{counts['cold']} cold starts, {'; '.join(self.failures) or 'none failed'}; "
            f"{self.processors} processors, {load}"
        )

    def markdown(self, day: date) -> str:
        """For the page."""
        head = "| What | Second quarter | Last quarter | Slope an hour | |\n|---|---|---|---|---|\n"
        rows = "".join(finding.row for finding in self.findings)
        return f"{day.isoformat()}, {self.summary}:\n\n{head}{rows}\n"
