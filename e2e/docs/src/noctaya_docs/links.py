"""Links among the files of the repository: where each leads, and whether that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from noctaya_docs.pages import REPOSITORY, prose

LINK: Final = re.compile(r"(?P<before>\]\()(?P<target>[^()\s]+)(?P<after>(?:\s+\"[^\"]*\")?\))")
"""The end of a link or picture: `](target)`."""
_FOREIGN: Final = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of a page to something of this repository."""

    page: Path
    line: int
    target: str
    """As it stands in the page."""

    @property
    def path(self) -> Path:
        """The file or folder it leads to, relative to the root; may not exist, may be outside."""
        name = unquote(self.target.partition("#")[0])
        return normal(self.page.parent / name) if name else self.page

    @property
    def anchor(self) -> str:
        """The heading it leads to; empty for the top."""
        return unquote(self.target.partition("#")[2])


def links_of(page: Path, root: Path = REPOSITORY) -> Iterator[Link]:
    """The links of a page that don't lead out of the repository's host."""
    for number, line in enumerate(prose(page, root).splitlines(), start=1):
        for match in LINK.finditer(line):
            if not _FOREIGN.match(match["target"]):
                yield Link(page=page, line=number, target=match["target"])


def fault_of(link: Link, root: Path = REPOSITORY) -> str:
    """What is wrong with a link; empty when nothing is."""
    where = f"{link.page}:{link.line}: {link.target}"
    if link.path.parts[:1] == ("..",):
        return f"{where} leads out of the repository"
    if not (root / link.path).exists():
        return f"{where}: there is no {link.path}"
    if link.anchor and link.path.suffix == ".md" and link.anchor not in anchors(root / link.path):
        return f"{where}: {link.path} has no heading for #{link.anchor}"
    return ""


def normal(path: Path) -> Path:
    """A relative path without `.` and, where it can be, without `..`."""
    kept: list[str] = []
    for part in path.parts:
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part != ".":
            kept.append(part)
    return Path(*kept)


@cache
def anchors(file: Path) -> frozenset[str]:
    """The anchors that forges give the headings of a page."""
    lines = file.read_text(encoding="utf-8").splitlines()
    outside = prose(Path(file.name), file.parent).splitlines()
    seen: dict[str, int] = {}
    for line, text in zip(lines, outside, strict=True):
        if text.startswith("#") and re.match(r"^#{1,6} ", line):
            slug = slug_of(line)
            seen[slug] = seen.get(slug, 0) + 1
    return frozenset(
        f"{slug}-{number}" if number else slug for slug, count in seen.items() for number in range(count)
    )


def slug_of(heading: str) -> str:
    """The anchor of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.lstrip("#").strip()).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
