"""Why a scenario failed, in a file beside its report: for the summary, and who sees nothing but that.

A scenario that fails once in ten runs is found from what was written down that once.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE: Final = "failure.json"
TEXT: Final = "failure.txt"
LINES_TOLD: Final = 4
LINE_TOLD: Final = 400


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One that was."""

    scenario: str
    """pytest's name of it."""
    stage: str
    """setup, call or teardown."""
    where: str
    """File and line where it was raised."""
    message: str
    """Of the error, whole."""
    seconds: float
    """How long the stage took."""
    ended: str
    """When, UTC: what to look for in the logs beside this file."""
    load: float
    """Processes that ran or wanted to, over the minute before."""

    def told(self) -> list[str]:
        """A few lines for a summary."""
        first = [line[:LINE_TOLD] for line in self.message.splitlines()[:LINES_TOLD]]
        return [f"{self.stage} failed after {self.seconds:.0f} s, load {self.load:.1f}: {self.where}", *first]


def load_average() -> float:
    """Of this machine, over a minute."""
    return os.getloadavg()[0]


def write(folder: Path, failure: Failure, *, text: str) -> None:
    """Into the folder of its report; `text` is pytest's own account."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(asdict(failure), indent=1))
    (folder / TEXT).write_text(text)


def read(folder: Path) -> dict[str, Failure]:
    """All below a folder, by scenario."""
    found = (Failure(**json.loads(file.read_text())) for file in folder.glob(f"*/{FILE}"))
    return {each.scenario: each for each in found}
