"""How long each scenario took, from the report that pytest leaves of a phase.

Who keeps the whole under its goal sees here where the time goes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = "junit.xml"
TOLD: Final = 5
WAITED: Final = "waited-for-turn"
ALONE: Final = "alone"


@dataclass(frozen=True, kw_only=True)
class Duration:
    """One scenario's, in seconds."""

    scenario: str
    seconds: float
    """From its beginning to its end, whatever it waited for."""
    waited: float = 0.0
    """Of that for its turn."""
    alone: float = 0.0
    """Of that while nobody else ran."""

    def told(self) -> str:
        """One line."""
        parts = [(self.waited, "waiting for its turn"), (self.alone, "alone")]
        more = ", ".join(f"{seconds:.0f} s {what}" for seconds, what in parts if seconds >= 1)
        return f"{self.seconds:4.0f} s  {self.scenario}{f' ({more})' if more else ''}"


def read(folder: Path) -> tuple[Duration, ...]:
    """Of a phase, the longest first; none when it left no report."""
    file = folder / FILE
    if not file.exists():
        return ()
    found = (_of(case) for case in ET.parse(file).iter("testcase"))
    return tuple(sorted(found, key=lambda each: each.seconds, reverse=True))


def told(durations: Iterable[Duration]) -> list[str]:
    """The longest, for a summary."""
    longest = sorted(durations, key=lambda each: each.seconds, reverse=True)
    return [each.told() for each in longest[:TOLD]]


def _of(case: ET.Element) -> Duration:
    given = {each.get("name"): float(each.get("value", "0")) for each in case.iter("property")}
    return Duration(
        scenario=case.get("name", ""),
        seconds=float(case.get("time", "0")),
        waited=given.get(WAITED, 0.0),
        alone=given.get(ALONE, 0.0),
    )
