"""The programs the bench needs from the machine, and which of them are not there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

GO_DEFAULT = Path("/usr/local/go/bin/go")  # where go.dev's archive puts it, often not on PATH


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the programs, None where one is not installed."""

    nginx: str | None
    wrk: str | None
    go: str | None

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of what is not installed."""
        return tuple(name for name in ("nginx", "wrk", "go") if getattr(self, name) is None)


def find_tools() -> Tools:
    """Look on PATH, in /usr/sbin (nginx of Debian) and in Go's default place."""
    go = shutil.which("go") or (str(GO_DEFAULT) if GO_DEFAULT.exists() else None)
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    return Tools(nginx=nginx, wrk=shutil.which("wrk"), go=go)
