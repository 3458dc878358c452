"""Which pages there are, and what stands in them outside and inside of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[4]
"""This package is used in place, from a checkout."""
IGNORED: Final = frozenset({".git", ".tox", ".venv", "build", "node_modules"})
_FENCE: Final = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^`\n]*)$")


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One block of code of a page."""

    page: Path
    line: int
    """Of its first line of content, from 1."""
    language: str
    lines: tuple[str, ...]


def command_pages(root: Path = REPOSITORY) -> list[Path]:
    """The pages whose commands are run: README, docs, examples; relative to `root`."""
    found = [root / "README.md", root / "SECURITY.md"]
    found += sorted((root / "docs").glob("*.md"))
    found += sorted((root / "examples").rglob("*.md"))
    return [page.relative_to(root) for page in found if page.is_file()]


def markdown_files(root: Path = REPOSITORY) -> list[Path]:
    """Every Markdown file of the repository, relative to it."""
    found = (page.relative_to(root) for page in root.rglob("*.md"))
    return sorted(page for page in found if not _foreign(page, root))


def _foreign(page: Path, root: Path) -> bool:
    """Whether a page is none of ours: made by a tool, or below a hidden folder that is not."""
    parts = page.parts[:-1]
    return bool(IGNORED.intersection(parts)) or any(
        part.startswith(".") or (root.joinpath(*parts[: number + 1]) / "pyvenv.cfg").exists()
        for number, part in enumerate(parts)
    )


def fences(page: Path, root: Path = REPOSITORY) -> Iterator[Fence]:
    """The blocks of code of a page.

    Raises:
        ValueError: a block is never closed.
    """
    opened: re.Match[str] | None = None
    begun, held = 0, list[str]()
    for number, line in enumerate((root / page).read_text(encoding="utf-8").splitlines(), start=1):
        match = _FENCE.match(line)
        if opened is None:
            if match:
                opened, begun, held = match, number + 1, []
        elif match and not match["language"] and len(match["ticks"]) >= len(opened["ticks"]):
            yield Fence(page=page, line=begun, language=opened["language"].strip(), lines=tuple(held))
            opened = None
        else:
            held.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"{page}:{begun - 1}: the block is never closed")


def prose(page: Path, root: Path = REPOSITORY) -> str:
    """The text of a page without its blocks and spans of code, with as many lines as the page."""
    inside = False
    kept = []
    for line in (root / page).read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
            kept.append("")
        else:
            kept.append("" if inside else re.sub(r"`+[^`]*`+", lambda span: " " * len(span[0]), line))
    return "".join(f"{line}\n" for line in kept)
