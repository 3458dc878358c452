"""A table for a terminal: columns as wide as they need, the last one cut to what is left. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

GAP: Final = "  "


def draw_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, spare: Sequence[str] = ()
) -> Iterator[str]:
    """Lines of a table.

    Args:
        header: titles of the columns.
        rows: cells, as many a row as there are titles.
        width: columns of the terminal; None when the output is no terminal and nothing is cut.
        spare: titles of columns to leave out where the terminal is too narrow, the first one first.
    """
    kept = list(range(len(header)))
    widths = [max(len(title), *(len(row[at]) for row in rows), 0) for at, title in enumerate(header)]
    for title in spare:
        if width is None or sum(widths[at] for at in kept) + len(GAP) * (len(kept) - 1) <= width:
            break
        kept = [at for at in kept if header[at] != title]
    for row in (header, *rows):
        cells = [row[at].ljust(widths[at]) for at in kept[:-1]]
        line = GAP.join([*cells, row[kept[-1]]]).rstrip()
        yield line if width is None or len(line) <= width else line[: max(1, width - 1)] + "…"
