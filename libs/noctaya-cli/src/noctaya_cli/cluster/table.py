"""A table for a terminal: columns as wide as they need, the last one cut to what is left. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

GAP: Final = "  "


def draw_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None) -> Iterator[str]:
    """Lines of a table.

    Args:
        header: titles of the columns.
        rows: cells, as many a row as there are titles.
        width: columns of the terminal; None when the output is no terminal and nothing is cut.
    """
    widths = [
        max(len(title), *(len(row[index]) for row in rows), 0) if rows else len(title)
        for index, title in enumerate(header)
    ]
    for row in (header, *rows):
        cells = [cell.ljust(size) for cell, size in zip(row[:-1], widths[:-1], strict=True)]
        line = GAP.join([*cells, row[-1]]).rstrip()
        yield line if width is None or len(line) <= width else line[: max(1, width - 1)] + "…"
