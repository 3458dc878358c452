"""What is wrong with an object that does not fit its model, in words for its owner."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

_MOST: Final = 5
"""Problems told at once; the first few are enough to see what to do."""


def explain(error: ValidationError) -> str:
    """One sentence with the path and the fault of each problem. Values are not repeated."""
    problems = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        path = ".".join(map(str, item["loc"]))
        fault = item["msg"].removeprefix("Value error, ")
        problems.append(f"{path}: {fault}" if path else fault)
    more = len(problems) - _MOST
    return "; ".join(problems[:_MOST]) + (f"; and {more} more" if more > 0 else "")
