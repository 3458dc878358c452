import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.quantity import QUANTITY_PATTERN, canonical_quantity, parse_quantity

SUFFIXES = [
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-2",
    "e+1",
]


@pytest.mark.parametrize(
    ("text", "amount", "canonical"),
    [
        ("0", "0", "0"),
        ("-0", "0", "0"),
        ("0Gi", "0", "0"),
        ("1", "1", "1"),
        ("+5", "5", "5"),
        ("-5", "-5", "-5"),
        ("1000", "1000", "1k"),
        ("1024", "1024", "1024"),
        ("500m", "0.5", "500m"),
        ("0.5", "0.5", "500m"),
        (".5", "0.5", "500m"),
        ("1.", "1", "1"),
        ("1000m", "1", "1"),
        ("1500k", "1500000", "1500k"),
        ("1Ki", "1024", "1Ki"),
        ("2048Mi", "2147483648", "2Gi"),
        ("1.5Gi", "1610612736", "1536Mi"),
        ("1.1Ki", "1126.4", "1126400m"),
        ("0.5Ki", "512", "512"),
        ("1023Ki", "1047552", "1023Ki"),
        ("1e3", "1000", "1e3"),
        ("12e2", "1200", "1200"),
        ("1e-3", "0.001", "1e-3"),
        ("1E", "1000000000000000000", "1E"),
        ("1E3", "1000", "1e3"),
        ("12E", "9223372036854775807", "9223372036854775807"),
        ("-12E", "-9223372036854775807", "-9223372036854775807"),
        ("1e99999999", "9223372036854775807", "9223372036854775807"),
        ("0.00000000001", "0.000000001", "1n"),
        ("-0.00000000001", "-0.000000001", "-1n"),
        ("1e-99999999", "0.000000001", "1e-9"),
        (2, "2", "2"),
        (2.5, "2.5", "2500m"),
    ],
)
def test_a_quantity_has_an_exact_amount_and_one_spelling(
    text: str | float, amount: str, canonical: str
) -> None:
    assert parse_quantity(text) == Decimal(amount)
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "-",
        "Gi",
        "1GB",
        "1 Gi",
        "1gi",
        "1K",
        "1e",
        "1e1.5",
        "0x10",
        "--1",
        "1Kii",
        "١",
        "1\n",
        True,
        "nan",
    ],
)
def test_what_kubernetes_cannot_parse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(
    st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True),
    st.sampled_from(SUFFIXES),
)
def test_the_canonical_spelling_keeps_the_amount_and_is_stable(number: str, suffix: str) -> None:
    canonical = canonical_quantity(number + suffix)
    assert parse_quantity(canonical) == parse_quantity(number + suffix)
    assert canonical_quantity(canonical) == canonical


@given(st.text(alphabet="0123456789.+-eEKMGTPimnuk", max_size=10))
def test_what_is_parsed_matches_the_pattern_of_the_schema(text: str) -> None:
    try:
        parse_quantity(text)
    except ValueError:
        return
    assert re.search(QUANTITY_PATTERN, text)


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_integers_are_exact(number: int) -> None:
    assert parse_quantity(number) == number
    assert parse_quantity(canonical_quantity(number)) == number
