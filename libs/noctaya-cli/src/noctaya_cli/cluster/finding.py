"""What `noctaya doctor` found: one fact, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from noctaya_cli.cluster.access import ClusterError


class Level(StrEnum):
    """How a fact is to be taken."""

    GOOD = "good"
    UNKNOWN = "unknown"
    WARNING = "warning"
    PROBLEM = "problem"


SIGN = {Level.GOOD: "✔", Level.UNKNOWN: "?", Level.WARNING: "!", Level.PROBLEM: "✖"}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fact about the cluster."""

    area: str
    level: Level
    what: str
    remedy: str = ""


def good(area: str, what: str) -> Finding:
    """Something that is as it should be."""
    return Finding(area=area, level=Level.GOOD, what=what)


def warning(area: str, what: str, *, remedy: str) -> Finding:
    """Something that will hurt, or hurts a little."""
    return Finding(area=area, level=Level.WARNING, what=what, remedy=remedy)


def problem(area: str, what: str, *, remedy: str) -> Finding:
    """Something that keeps services from working."""
    return Finding(area=area, level=Level.PROBLEM, what=what, remedy=remedy)


Check = Callable[[], Iterable[Finding]]


def look(area: str, check: Check) -> Iterator[Finding]:
    """What a check finds; one that can't look says so instead of ending the examination."""
    try:
        yield from check()
    except ClusterError as error:
        yield Finding(area=area, level=Level.UNKNOWN, what=f"could not look: {error}")
