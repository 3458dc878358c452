"""The table of faults in docs/reliability.md, between two marks; the rest of the page is written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from noctaya_chaos.run import Verdict
from noctaya_chaos.verdict import summary

BEGIN: Final = "<!-- chaos: begin (python -m noctaya_chaos --write docs/reliability.md) -->"
END: Final = "<!-- chaos: end -->"
HEAD: Final = "| Fault | Promise | Seen |\n|---|---|---|\n"


class NoMarks(Exception):
    """The page has no place for the table."""


def table(verdicts: Iterable[Verdict], *, known: str = "", order: Sequence[str] = ()) -> str:
    """Markdown.

    Args:
        verdicts: what was seen now.
        known: the table as it was: its rows of other faults stay.
        order: what each fault does, in the order of the rows; a row of none of them goes.
    """
    rows = {fault: line for line in known.splitlines(keepends=True) if (fault := _cells(line)[:1])}
    now = {(each.fault.done,): row(each) for each in verdicts}
    names = [(done,) for done in order] or list(now)
    return HEAD + "".join((rows | now)[name] for name in names if name in rows | now)


def _cells(line: str) -> tuple[str, ...]:
    return (
        tuple(cell.strip() for cell in line.strip().strip("|").split(" | ")) if line.startswith("| ") else ()
    )


def row(verdict: Verdict) -> str:
    """One fault. A broken promise is told in the row."""
    said = summary(verdict.seen)
    if verdict.broken:
        said = f"**broken: {'; '.join(verdict.broken)}**; {said}"
    return f"| {verdict.fault.done} | {verdict.fault.expected} | {said} |\n"


def between(page: Path, begin: str = BEGIN, end: str = END) -> str:
    """What stands between two marks. Raises NoMarks."""
    return _parted(page, begin, end)[1]


def write(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Put text between two marks. Raises NoMarks."""
    before, _, after = _parted(page, begin, end)
    page.write_text(f"{before}{begin}\n{text}{end}{after}")


def _parted(page: Path, begin: str, end: str) -> tuple[str, str, str]:
    before, begins, rest = page.read_text().partition(begin)
    inside, ends, after = rest.partition(end)
    if not begins or not ends:
        raise NoMarks(f"{page} has no lines {begin!r} and {end!r} to write between")
    return before, inside, after
