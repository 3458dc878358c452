import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.duration import format_duration, format_duration_ns, parse_duration, parse_duration_ns

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300ms", 0.3),
        ("10s", 10),
        ("2m", 120),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1.s", 1),
        ("-1s", -1),
        ("+5m", 300),
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1h1m1s1ms1us1ns", 3661.001001001),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("1μs", 1e-6),
        ("100000000h1m", None),
    ],
)
def test_go_duration_text_is_read_as_seconds(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(ValueError, match="292 years"):
            parse_duration(text)
    else:
        assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "+",
        "abc",
        "1d",
        "1",
        "s",
        ".s",
        "1h 3m",
        " 1s",
        "1s ",
        "--1s",
        "1e3s",
        "١s",
        "1S",
        "1,5s",
        "10s\n",
    ],
)
def test_text_that_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|without a unit|unknown unit"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (300 * SECOND, "5m0s"),
        (5400 * SECOND, "1h30m0s"),
        (3600 * SECOND + 1, "1h0m0.000000001s"),
        (-1_500_000_000, "-1.5s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(nanoseconds: int, text: str) -> None:
    assert format_duration_ns(nanoseconds) == text
    assert parse_duration_ns(text) == nanoseconds


def test_the_range_is_that_of_64_bit_nanoseconds() -> None:
    assert parse_duration_ns("-9223372036854775808ns") == -(2**63)
    for text in ("9223372036854775808ns", "-9223372036854775809ns"):
        with pytest.raises(ValueError, match="292 years"):
            parse_duration_ns(text)


def test_digits_below_a_nanosecond_are_cut_off() -> None:
    assert parse_duration_ns("1.0000000019s") == SECOND + 1


def test_seconds_are_rounded_to_nanoseconds_when_written() -> None:
    assert format_duration(0.3) == "300ms"
    assert format_duration(300) == "5m0s"


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_what_is_written_reads_back_exactly(nanoseconds: int) -> None:
    assert parse_duration_ns(format_duration_ns(nanoseconds)) == nanoseconds


@given(st.text(alphabet="0123456789.+-hmsuµn d", max_size=12))
def test_any_text_is_either_a_duration_or_refused_with_a_message(text: str) -> None:
    try:
        nanoseconds = parse_duration_ns(text)
    except ValueError as error:
        assert repr(text) in str(error)
    else:
        assert parse_duration_ns(format_duration_ns(nanoseconds)) == nanoseconds
