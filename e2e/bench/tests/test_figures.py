import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_bench.figures import paired_ratio, percentile, write_number


def test_ratio_is_taken_round_by_round_so_that_a_slow_round_of_both_does_not_count():
    assert paired_ratio([20.0, 200.0, 22.0], [10.0, 100.0, 11.0]) == 2.0


def test_ratio_needs_as_many_rounds_on_both_sides():
    with pytest.raises(ValueError, match="got 2 and 1"):
        paired_ratio([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="got 0 and 0"):
        paired_ratio([], [])


@pytest.mark.parametrize(("share", "expected"), [(50, 50), (99, 99), (100, 100), (0, 1), (1, 1)])
def test_percentile_is_the_nearest_rank(share, expected):
    assert percentile(list(range(100, 0, -1)), share) == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.floats(0, 100))
def test_percentile_is_one_of_the_values(values, share):
    assert min(values) <= percentile(values, share) <= max(values)
    assert percentile(values, share) in values


def test_percentile_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345.6, "12,346"),
        (100.0, "100"),
        (42.26, "42.3"),
        (4.256, "4.26"),
        (0.0421, "0.042"),
        (0.0, "0.000"),
    ],
)
def test_numbers_are_written_with_three_digits(value, text):
    assert write_number(value) == text
