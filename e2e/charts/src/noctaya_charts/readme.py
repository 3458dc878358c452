"""The table of values in a chart's README: everything else in the file is written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from noctaya_charts.values import Value

BEGIN: Final = "<!-- values: generated from values.yaml -->"
END: Final = "<!-- end of values -->"


class ReadmeFault(Exception):
    """The README has no place for the table."""


def render_readme(text: str, values: Sequence[Value]) -> str:
    """The README with a fresh table. Raises ReadmeFault when the two marks are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ReadmeFault(f"the lines {BEGIN!r} and {END!r} must surround the table of values")
    table = "\n".join(_table(values))
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _table(values: Sequence[Value]) -> Iterator[str]:
    yield "| Value | Default | |"
    yield "|---|---|---|"
    for value in values:
        for leaf in value.leaves():
            yield f"| `{leaf.name}` | {_default(leaf.default)} | {_cell(leaf.description)} |"


def _default(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
