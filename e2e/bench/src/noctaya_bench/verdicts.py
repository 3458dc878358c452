"""What a measure hands over: figures in a table, and for each promise whether it was reached."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise with what was measured; `reached` is None when it could not be measured."""

    promise: str
    measured: str
    reached: bool | None

    @property
    def word(self) -> str:
        if self.reached is None:
            return "not measured"
        return "reached" if self.reached else "MISSED"


@dataclass(slots=True)
class Finding:
    """Everything one measure found."""

    measure: str
    title: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    """What only this measure had to do with; shown with the versions of everything else."""


def at_most(promise: str, value: float | None, limit: float, text: str) -> Verdict:
    """A promise of the kind "not more than"; value None means that it could not be measured."""
    return Verdict(promise=promise, measured=text, reached=None if value is None else value <= limit)
