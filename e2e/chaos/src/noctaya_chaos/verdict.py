"""What the contract promises through a fault, and whether what was seen keeps to it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from noctaya_chaos.load import OK, Outcome
from noctaya_chaos.timeline import Timeline, faults

COLD_BOUND: Final = 90.0
"""Seconds a cold request may take through a fault: the activation timeout of the services here."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What may go wrong in a fault; nothing, unless said."""

    results: frozenset[str] = frozenset()
    """Results other than `OK` that a request may have."""
    within: float = 0.0
    """Seconds after the fault began by which the last such request has ended."""
    slowest: float = 5.0
    """Seconds that an answer of the warm service may take at most."""
    down: bool = False
    """Whether the warm service may be seen without a backend."""
    told: bool = False
    """Whether a whole cold start has to come to pass in it, and the status to tell all of its timeline."""


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """What was seen of one fault. Times are time.monotonic()."""

    inflicted: float
    ended: float
    steady: float | None
    """When everything was as before: None if that did not come in time."""
    outcomes: Sequence[Outcome]
    replicas: Sequence[int]
    """Of the warm service's backend, as often as somebody could say."""
    foreign: Sequence[str] = field(default=())
    """Objects of others that changed."""
    timelines: Sequence[Timeline] = field(default=())
    """Of the cold starts that the status told of meanwhile."""
    during: Sequence[Timeline] = field(default=())
    """Those of them that began while the fault lasted, as they were told at its end."""
    complaints: Sequence[str] = field(default=())
    """What a fault itself found that should not be."""

    @property
    def recovery(self) -> float | None:
        """Seconds from the end of the fault until everything was as before."""
        return None if self.steady is None else max(0.0, self.steady - self.ended)


def violations(promise: Promise, seen: Sighting) -> list[str]:
    """What was broken, in words; empty when the promise held."""
    broken: list[str] = []
    failed = [each for each in seen.outcomes if each.result != OK]
    for (kind, result), count in sorted(Counter((each.kind, each.result) for each in failed).items()):
        if result not in promise.results:
            broken.append(f"{count} {kind}: {result}")
    late = [
        each
        for each in failed
        if each.result in promise.results and each.ended - seen.inflicted > promise.within
    ]
    if late:
        worst = max(each.ended for each in late) - seen.inflicted
        broken.append(
            f"{len(late)} still failed {worst:.0f} s after the fault began ({promise.within:g} s allowed)"
        )
    warm = slowest(seen.outcomes, "json")
    if warm > promise.slowest:
        broken.append(f"a warm answer took {warm:.1f} s ({promise.slowest:g} s allowed)")
    cold = slowest(seen.outcomes, "cold")
    if cold > COLD_BOUND:
        broken.append(f"a cold start took {cold:.0f} s ({COLD_BOUND:g} s allowed)")
    if not any(each.kind == "json" for each in seen.outcomes):
        broken.append("no warm request was made, so nothing is shown")
    if not promise.down and any(each == 0 for each in seen.replicas):
        broken.append("the busy service was scaled to zero")
    if seen.steady is None:
        broken.append("not as before in time")
    broken.extend(wrong for each in seen.timelines for wrong in faults(each, longest=cold))
    if promise.told and not any(each.whole for each in seen.during):
        broken.append("no cold start in it of which the status told everything")
    broken.extend(seen.complaints)
    broken.extend(f"changed, though it is not ours: {each}" for each in seen.foreign)
    return broken


def slowest(outcomes: Sequence[Outcome], kind: str) -> float:
    """Seconds of the slowest answer of a kind that came; 0 when there was none."""
    return max((each.seconds for each in outcomes if each.kind == kind and each.result == OK), default=0.0)


def summary(seen: Sighting) -> str:
    """What was seen, in a line."""
    counts = Counter(each.kind for each in seen.outcomes)
    failed = Counter(each.result for each in seen.outcomes if each.result != OK)
    said = ", ".join(f"{count} {result}" for result, count in sorted(failed.items())) or "none failed"
    recovery = "never" if seen.recovery is None else f"{seen.recovery:.0f} s"
    return (
        f"{counts['json']} answers, {counts['stream']} streams, {counts['cold']} cold starts: {said}; "
        f"slowest warm {slowest(seen.outcomes, 'json'):.1f} s, cold {slowest(seen.outcomes, 'cold'):.1f} s; "
        f"as before after {recovery}"
    )
