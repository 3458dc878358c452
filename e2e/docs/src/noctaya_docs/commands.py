"""The commands of a page, one by one, as a reader would paste them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noctaya_docs.pages import REPOSITORY, Fence, command_pages, fences

SHELL: Final = frozenset({"", "sh", "shell", "bash", "console"})
"""Languages of blocks that hold commands. What is no command says what it is: `text`, `yaml`, `json` ..."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command with the place it stands at."""

    page: Path
    line: int
    text: str
    """Without comments, continued lines joined, blanks as they are in quotes and single elsewhere."""

    @property
    def where(self) -> str:
        """`page:line`."""
        return f"{self.page}:{self.line}"


def all_commands(root: Path = REPOSITORY) -> list[Command]:
    """The commands of all pages, in their order."""
    return [each for page in command_pages(root) for each in commands_of(page, root)]


def commands_of(page: Path, root: Path = REPOSITORY) -> Iterator[Command]:
    """The commands of one page, in its order."""
    for fence in fences(page, root):
        if fence.language in SHELL:
            yield from _commands(fence)


def _commands(fence: Fence) -> Iterator[Command]:
    for begin, text in logical_lines(fence.lines):
        if text:
            yield Command(page=fence.page, line=fence.line + begin, text=text)


def logical_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines as a shell joins them, with the number of their first, from 0.

    Raises:
        ValueError: a quote is never closed, or the last line wants to be continued.
    """
    text, quote, begun, open_line = "", "", 0, False
    for number, line in enumerate(lines):
        if not open_line:
            text, quote, begun = "", "", number
        within = quote
        part, quote, continued = _scan(line, quote)
        text += part if within else part.lstrip()
        open_line = continued or bool(quote)
        if quote:
            text += "\n"
        elif not continued:
            yield begun, text.strip()
    if open_line:
        raise ValueError(f"line {begun + 1} of the block is never finished: {text.strip()}")


def _scan(line: str, quote: str) -> tuple[str, str, bool]:
    """A line without its comment; the quote that is open at its end; whether it ends with a backslash."""
    kept: list[str] = []
    position = 0
    while position < len(line):
        char = line[position]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and (not kept or kept[-1] in " \t"):
            break
        elif char == "\\" and position == len(line) - 1:
            return "".join(kept), quote, True
        elif char in " \t" and kept and kept[-1] == " ":
            position += 1
            continue
        kept.append(char)
        position += 1
    return "".join(kept), quote, False
