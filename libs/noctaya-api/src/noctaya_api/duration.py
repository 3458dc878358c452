"""Go duration text (`300ms`, `1h30m`, `-1.5s`), the only duration syntax of the API and of the environment.

Values are exact nanoseconds inside and seconds outside, so that `parse_duration(format_duration(x)) == x`
for every value with nanosecond precision, and so that the accepted range is the one of the Kubernetes API
server: 64-bit nanoseconds, about 292 years.
"""

import re
from typing import Final

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
_SECOND: Final = 1_000_000_000
_LIMIT: Final = 2**63


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of a Go duration; digits below a nanosecond are cut off.

    Raises ValueError when the text is not a duration or lies outside the 64-bit range.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if rest == "0":
        return 0
    total = 0
    position = 0
    while position < len(rest):
        term = _TERM.match(rest, position)
        if term is None or not (term["whole"] or term["fraction"]):
            raise ValueError(f"{text!r} is not a duration such as 300ms, 10s or 1h30m")
        if not term["unit"]:
            raise ValueError(f"{text!r} has a number without a unit; write for example {rest}s")
        factor = _NANOSECONDS.get(term["unit"])
        if factor is None:
            raise ValueError(f"{text!r} has the unknown unit {term['unit']!r}; use h, m, s, ms, us or ns")
        fraction = term["fraction"] or ""
        total += int(term["whole"] or 0) * factor
        total += int(fraction or 0) * factor // 10 ** len(fraction)
        position = term.end()
    if position == 0:
        raise ValueError(f"{text!r} is not a duration such as 300ms, 10s or 1h30m")
    # Go accepts -2**63 but not +2**63.
    if total > _LIMIT or (total == _LIMIT and sign > 0):
        raise ValueError(f"{text!r} is longer than a duration can be (about 292 years)")
    return sign * total


def parse_duration(text: str) -> float:
    """Seconds of a Go duration. Raises ValueError like `parse_duration_ns`."""
    return parse_duration_ns(text) / _SECOND


def format_duration_ns(nanoseconds: int) -> str:
    """The text Go prints for that many nanoseconds: `1.5µs`, `300ms`, `5m0s`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    magnitude = abs(nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if magnitude < 1_000 * _NANOSECONDS[unit]:
            return f"{sign}{_decimal(magnitude, _NANOSECONDS[unit])}{unit}"
    minutes, rest = divmod(magnitude, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def format_duration(seconds: float) -> str:
    """The text Go prints for that many seconds, rounded to the nanosecond."""
    return format_duration_ns(round(seconds * _SECOND))


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).zfill(len(str(unit)) - 1).rstrip('0')}"
