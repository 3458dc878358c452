"""The same alerts in a fraction of their time, so that a test can wait for them. Pure.

An alert that waits ten minutes and looks an hour back says the same about a system whose minutes are seconds.
What is divided is time: ranges, offsets, `for`. Thresholds stay, save those that are times themselves and
that a test names: waiting three minutes for a slow cold start shows no more than waiting three seconds.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

UNITS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
    "y": 31_536_000_000,
}
"""Milliseconds, as Prometheus counts them."""
_ONE: Final = r"\d+(?:ms|[smhdwy])"
_TIMES: Final = re.compile(rf"(?P<before>\[|offset\s+)(?P<time>(?:{_ONE})+)")


class NoSuchThreshold(Exception):
    """A threshold that is to be replaced is not in the expression exactly once."""


def quickened(
    rules: Mapping[str, Any],
    *,
    factor: float,
    factors: Mapping[str, float] | None = None,
    thresholds: Mapping[str, tuple[str, str]] | None = None,
    interval: str = "1s",
) -> dict[str, Any]:
    """The groups of a rules file, `factor` times as fast and evaluated every `interval`.

    Args:
        rules: as Prometheus reads them.
        factor: by how much times are divided.
        factors: other factors, by the name of the alert.
        thresholds: by the name of the alert, a piece of its expression and what stands there instead.
        interval: between two evaluations.

    Raises:
        NoSuchThreshold: a piece is not there, or more than once.
    """
    found: dict[str, Any] = copy.deepcopy(dict(rules))
    for group in found["groups"]:
        group["interval"] = interval
        for rule in group["rules"]:
            name = rule.get("alert", rule.get("record"))
            by = (factors or {}).get(name, factor)
            expression = divided(rule["expr"], by)
            if name in (thresholds or {}):
                piece, instead = (thresholds or {})[name]
                if expression.count(piece) != 1:
                    raise NoSuchThreshold(f"{name}: {piece!r} is {expression.count(piece)} times there")
                expression = expression.replace(piece, instead)
            rule["expr"] = expression
            if "for" in rule:
                rule["for"] = written(milliseconds(rule["for"]) / by)
    return found


def divided(expression: str, factor: float) -> str:
    """An expression with its ranges and offsets divided; numbers that are no times stay."""

    def shorter(found: re.Match[str]) -> str:
        return found["before"] + written(milliseconds(found["time"]) / factor)

    return _TIMES.sub(shorter, expression)


def milliseconds(text: str) -> int:
    """Of a duration such as `1h30m`. ValueError when it is none."""
    if not re.fullmatch(rf"(?:{_ONE})+", text):
        raise ValueError(f"{text!r} is not a duration such as 5m or 1h30m")
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", text))


def written(wanted: float) -> str:
    """A duration of that many milliseconds, at least one."""
    return f"{max(1, round(wanted))}ms"
