"""Alerts in a fraction of their time: times are divided, everything else stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_monitoring.pace import NoSuchThreshold, divided, milliseconds, quickened, written


@pytest.mark.parametrize(
    ("expression", "faster"),
    [
        ("rate(a[5m]) > 0.1", "rate(a[5000ms]) > 0.1"),
        ("increase(a[7d] offset 1h)", "increase(a[10080000ms] offset 60000ms)"),
        ('a{b="5m"} offset  1m30s', 'a{b="5m"} offset  1500ms'),
        ("a[1h:5m]", "a[60000ms:5m]"),
        ("a - time() < 14 * 86400", "a - time() < 14 * 86400"),
    ],
)
def test_ranges_and_offsets_are_divided_and_numbers_stay(expression: str, faster: str) -> None:
    assert divided(expression, 60) == faster


def test_a_rule_keeps_its_labels_and_gets_its_own_factor_and_threshold() -> None:
    def rule(name: str) -> dict[str, object]:
        return {"alert": name, "expr": "a[1h] > 180", "for": "10m", "labels": {"severity": "warning"}}

    given_rules = {"groups": [{"name": "g", "rules": [rule("One"), rule("Two")]}]}
    group = quickened(given_rules, factor=60, factors={"Two": 600}, thresholds={"One": ("> 180", "> 3")})[
        "groups"
    ][0]
    assert group["interval"] == "1s"
    one, two = group["rules"]
    assert (one["expr"], one["for"]) == ("a[60000ms] > 3", "10000ms")
    assert (two["expr"], two["for"]) == ("a[6000ms] > 180", "1000ms")
    assert one["labels"] == {"severity": "warning"}
    assert given_rules["groups"][0]["rules"] == [rule("One"), rule("Two")]


def test_a_threshold_that_is_not_there_is_named() -> None:
    rules = {"groups": [{"name": "g", "rules": [{"alert": "One", "expr": "a > 1"}]}]}
    with pytest.raises(NoSuchThreshold, match="One: '> 180' is 0 times there"):
        quickened(rules, factor=60, thresholds={"One": ("> 180", "> 3")})


@given(st.integers(min_value=1, max_value=10**12))
def test_what_is_written_is_read(time: int) -> None:
    assert milliseconds(written(time)) == time


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "5x", "-5m", "1.5h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        milliseconds(text)
