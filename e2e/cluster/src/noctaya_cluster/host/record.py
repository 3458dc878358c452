"""What was decided for a cluster: written before anything is made."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from .addresses import Addresses


@dataclass(frozen=True)
class Record:
    """Of one cluster."""

    block: int
    """Of its addresses."""
    snapshotter: str
    """Of containerd: `overlayfs`, or `native` where the disk can't."""
    versions: dict[str, str]
    """Of its parts."""

    @property
    def addresses(self) -> Addresses:
        """Its addresses."""
        return Addresses(self.block)

    def write(self, file: Path) -> None:
        """Whole or not at all."""
        partial = file.with_suffix(".new")
        partial.write_text(json.dumps(asdict(self), indent=1))
        partial.replace(file)

    @classmethod
    def read(cls, file: Path) -> Record | None:
        """None when there is none, or what is there can't be read."""
        try:
            found = json.loads(file.read_text())
            return cls(found["block"], found["snapshotter"], dict(found["versions"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
