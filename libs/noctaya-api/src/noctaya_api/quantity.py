"""Kubernetes resource quantities: `500m`, `2Gi`, `1e3`.

Two manifests that spell one amount differently (`2048Mi`, `2Gi`) must compare equal, and a quantity that
the API server can't read must be refused before it is stored; both need the exact grammar of Kubernetes
rather than a float.
"""

import re
from decimal import ROUND_UP, Context, Decimal
from typing import Final

# The pattern the API server publishes for quantities. It is wider than the parser: `1e1.5` matches and is
# refused.
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NANO: Final = Decimal("1e-9")
_MAX: Final = Decimal(2**63 - 1)
# Exponents beyond this are all clamped to _MAX or rounded to one nano; the cap keeps hostile input cheap.
_MAX_EXPONENT: Final = 10_000
_EXACT: Final = Context(prec=500, Emax=999_999, Emin=-999_999)


def parse_quantity(value: str | int | float) -> Decimal:
    """The amount as an exact decimal.

    As in Kubernetes, amounts finer than a nano are rounded away from zero. Magnitudes beyond 2**63-1, which
    no cluster has, are capped there. Raises ValueError when the text is not a quantity.
    """
    return _parse(value)[0]


def canonical_quantity(value: str | int | float) -> str:
    """The spelling Kubernetes stores for this amount: `2048Mi` gives `2Gi`, `0.5` gives `500m`.

    The format follows the input as in Kubernetes: binary suffixes stay binary, exponents stay exponents,
    the rest is decimal. Raises ValueError when the text is not a quantity.
    """
    amount, style = _parse(value)
    if amount == 0:
        return "0"
    # Kubernetes turns a binary quantity below 1024, or one with a fraction, into a decimal one.
    if style == "binary" and (abs(amount) < 1024 or amount != amount.to_integral_value()):
        style = "decimal"
    if style == "binary":
        return _binary(int(amount))
    mantissa, exponent = _thousands(amount)
    if style == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def _parse(value: str | int | float) -> tuple[Decimal, str]:
    text = str(value) if not isinstance(value, bool) else ""
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ValueError(f"{value!r} is not a quantity such as 500m, 2 or 16Gi")
    suffix = found["suffix"] or ""
    number = Decimal(found["number"])
    if suffix in _BINARY:
        style, amount = "binary", _EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix]))
    elif suffix in _DECIMAL:
        style, amount = "decimal", _EXACT.scaleb(number, _DECIMAL[suffix])
    else:
        exponent = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, int(suffix[1:])))
        style, amount = "exponent", _EXACT.scaleb(number, exponent)
    if amount >= _MAX:
        amount = _MAX
    elif amount != 0:
        amount = amount.quantize(_NANO, rounding=ROUND_UP, context=_EXACT)
    return (-amount if found["sign"] == "-" else amount), style


def _binary(amount: int) -> str:
    power = 0
    while power < len(_BINARY) and amount % 1024 == 0:
        amount //= 1024
        power += 1
    return f"{amount}{['', *_BINARY][power]}"


def _thousands(amount: Decimal) -> tuple[int, int]:
    """Whole mantissa and the largest exponent, a multiple of three in -9..18, that leaves it whole."""
    nanos = int(_EXACT.scaleb(amount, 9))
    exponent = -9
    while exponent < 18 and nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    return nanos, exponent
