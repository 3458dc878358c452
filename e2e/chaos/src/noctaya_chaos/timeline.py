"""The timeline of a cold start as the status tells it, against what its client saw. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

MOMENTS: Final = (
    "requested",
    "kedaTold",
    "replicasWritten",
    "scheduled",
    "weightsPresent",
    "imagesPulled",
    "started",
    "ready",
    "firstByte",
    "ended",
)
"""Of `status.lastActivation`, in the order in which they come to pass."""
SLACK: Final = 5.0
"""Seconds by which a timeline may be longer than the longest cold start that a client saw: what the operator
sees for itself is as late as a pass."""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One `status.lastActivation` as it was seen last."""

    pod: str
    succeeded: bool
    named: bool
    """Whether it has the id that gateways gave it."""
    moments: tuple[tuple[str, datetime], ...]
    """Those that are known, in the order of MOMENTS."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Timeline:
        """From a status."""
        known = ((name, record.get(name)) for name in MOMENTS)
        return cls(
            pod=str(record.get("pod") or ""),
            succeeded=record.get("outcome") == "Succeeded",
            named=bool(record.get("id")),
            moments=tuple((name, datetime.fromisoformat(text)) for name, text in known if text),
        )

    @property
    def whole(self) -> bool:
        """Whether it tells of a success from the request to the first byte, by the gateways' id."""
        names = {name for name, _ in self.moments}
        return self.succeeded and self.named and {"requested", "ready", "firstByte"} <= names

    @property
    def seconds(self) -> float:
        """From the request to the first byte, or as far as is known before the end."""
        times = [moment for name, moment in self.moments if name != "ended"]
        return (times[-1] - times[0]).total_seconds() if times else 0.0


def faults(timeline: Timeline, *, longest: float) -> list[str]:
    """What is wrong with a timeline, in words.

    Args:
        timeline: to be looked at.
        longest: seconds of the longest cold start that a client saw meanwhile; 0 when none saw one.
    """
    wrong = [
        f"the timeline of {timeline.pod} runs backwards: "
        f"{later} {(before - after).total_seconds():.1f} s before {earlier}"
        for (earlier, before), (later, after) in pairwise(timeline.moments)
        if after < before
    ]
    if timeline.whole and longest and timeline.seconds > longest + SLACK:
        wrong.append(
            f"the timeline of {timeline.pod} tells of {timeline.seconds:.1f} s, "
            f"no client waited over {longest:.1f} s"
        )
    return wrong
