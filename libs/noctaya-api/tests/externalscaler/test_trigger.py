import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.externalscaler.trigger import InvalidTrigger, Trigger, parse_trigger


def test_an_empty_metric_name_means_pending() -> None:
    assert parse_trigger({"targetValue": "5"}) == Trigger("pending", 5.0)
    assert parse_trigger({"metricName": "", "targetValue": "5"}) == Trigger("pending", 5.0)


@pytest.mark.parametrize("text", ["1", "5", "0.5", ".5", "5.", "+2", "1e3", "2.5E-1", "0005"])
def test_finite_targets_above_zero_are_accepted(text: str) -> None:
    assert parse_trigger({"targetValue": text}).target == float(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "zero",
        "NaN",
        "nan",
        "+Inf",
        "inf",
        "Infinity",
        "0",
        "0.0",
        "-1",
        "1e999",
        "1_0",
        " 5",
        "5 ",
        "٣",
        "5s",
    ],
)
def test_a10_other_targets_are_refused(text: str) -> None:
    with pytest.raises(InvalidTrigger, match="targetValue"):
        parse_trigger({"targetValue": text})


def test_a10_a_missing_target_and_another_metric_are_refused() -> None:
    with pytest.raises(InvalidTrigger, match="missing"):
        parse_trigger({})
    with pytest.raises(InvalidTrigger, match="s0-pending"):
        parse_trigger({"metricName": "s0-pending", "targetValue": "5"})


@given(st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False))
def test_s3_the_whole_target_is_an_int64_above_zero_and_close(target: float) -> None:
    whole = parse_trigger({"targetValue": f"{target!r}"}).whole_target
    assert 1 <= whole <= 2**63 - 1
    if 1 <= target <= 2**53:
        assert math.isclose(whole, target, abs_tol=0.5)
