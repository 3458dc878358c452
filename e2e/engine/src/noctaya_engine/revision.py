"""Which commit an image is made from: the last one that touched what goes into it.

Not the newest of the repository: a commit elsewhere would change every image's labels and nothing else.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

UNKNOWN_TIME = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Revision:
    """A commit, `-dirty` when the inputs differ from it, and its time in UTC."""

    commit: str
    created: str


def revision_of(root: Path, inputs: tuple[str, ...]) -> Revision:
    """The revision of these inputs; `unknown` outside a git repository."""
    env = {"TZ": "UTC"}
    told = _git(
        root, env, "log", "-1", "--format=%H %cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--", *inputs
    )
    if not told:
        return Revision("unknown", UNKNOWN_TIME)
    commit, _, created = told.partition(" ")
    changed = _git(root, env, "status", "--porcelain", "--", *inputs)
    return Revision(f"{commit}-dirty" if changed else commit, created)


def _git(root: Path, env: dict[str, str], *arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
