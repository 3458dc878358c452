"""Prometheus text, as far as a test asks it something."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def sample(text: str, name: str, **labels: str) -> float | None:
    """Sum of the samples of a metric that carry these labels; None when there is none."""
    found = None
    for line in text.splitlines():
        if line.startswith("#") or not line.startswith(name):
            continue
        head, _, value = line.rpartition(" ")
        metric, _, rest = head.partition("{")
        if metric != name:
            continue
        carried = dict(_LABEL.findall(rest))
        if all(carried.get(label) == wanted for label, wanted in labels.items()):
            found = (found or 0.0) + float(value)
    return found
