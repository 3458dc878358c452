"""The table of faults in docs/reliability.md, between two marks; the rest of the page is written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from noctaya_chaos.run import Verdict
from noctaya_chaos.verdict import summary

BEGIN: Final = "<!-- chaos: begin (python -m noctaya_chaos --write docs/reliability.md) -->"
END: Final = "<!-- chaos: end -->"
HEAD: Final = "| Fault | Promise | Seen |\n|---|---|---|\n"


class NoMarks(Exception):
    """The page has no place for the table."""


def table(verdicts: Iterable[Verdict]) -> str:
    """Markdown."""
    return HEAD + "".join(row(each) for each in verdicts)


def row(verdict: Verdict) -> str:
    """One fault. A broken promise is told in the row."""
    said = summary(verdict.seen)
    if verdict.broken:
        said = f"**broken: {'; '.join(verdict.broken)}**; {said}"
    return f"| {verdict.fault.done} | {verdict.fault.expected} | {said} |\n"


def write(page: Path, text: str) -> None:
    """Put a table between the page's marks. Raises NoMarks."""
    content = page.read_text()
    before, begin, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarks(f"{page} has no lines {BEGIN!r} and {END!r} to write between")
    page.write_text(f"{before}{BEGIN}\n{text}{END}{after}")
