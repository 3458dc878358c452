import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.demand.report import (
    INT64_MAX,
    MAX_BODY_BYTES,
    UINT64_MAX,
    DemandReport,
    InvalidReport,
    parse_report,
)

GOOD: dict[str, Any] = {"memberID": "uid/0123", "sequence": 7, "demand": 3}


def body(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_a_report_reads_as_it_was_written() -> None:
    report = DemandReport(member_id="uid/0123", sequence=7, demand=3)
    assert parse_report(report.to_json()) == report
    assert json.loads(report.to_json()) == GOOD


@given(
    member_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128),
    sequence=st.integers(1, UINT64_MAX),
    demand=st.integers(0, INT64_MAX),
)
def test_every_valid_report_survives_the_wire(member_id: str, sequence: int, demand: int) -> None:
    report = DemandReport(member_id=member_id, sequence=sequence, demand=demand)
    assert parse_report(report.to_json()) == report


def test_keys_match_in_any_case() -> None:
    assert parse_report(b'{"MEMBERID":"m","Sequence":1,"deMand":0}').member_id == "m"


@pytest.mark.parametrize(
    "changes",
    [
        {"memberID": ""},
        {"memberID": "x" * 513},
        {"memberID": "é" * 257},
        {"memberID": 1},
        {"memberID": None},
        {"sequence": 0},
        {"sequence": -1},
        {"sequence": 1.5},
        {"sequence": 1.0},
        {"sequence": "1"},
        {"sequence": True},
        {"sequence": UINT64_MAX + 1},
        {"demand": -1},
        {"demand": 0.5},
        {"demand": None},
        {"demand": False},
        {"demand": INT64_MAX + 1},
        {"extra": 1},
        {"member_id": "m"},
    ],
)
def test_a4_values_out_of_range_and_unknown_fields_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidReport):
        parse_report(body(**changes))


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_a4_a_missing_field_is_refused(missing: str) -> None:
    fields = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(InvalidReport, match=missing):
        parse_report(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b"not json",
        body() + b"x",
        body() + body(),
        body()[:-1],
        b"[" * 60_000,
        b'{"memberID":"\xff","sequence":1,"demand":1}',
        b'{"memberID":"\\ud800","sequence":1,"demand":1}',
        b'{"memberID":"m","sequence":1,"demand":NaN}',
        b'{"memberID":"m","sequence":1' + b"0" * 5000 + b',"demand":1}',
    ],
)
def test_a4_what_is_not_exactly_one_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidReport):
        parse_report(raw)


def test_a4_the_body_bound_is_64_kib() -> None:
    padding = b" " * (MAX_BODY_BYTES - len(body()))
    assert parse_report(body() + padding).demand == 3
    with pytest.raises(InvalidReport, match="longer"):
        parse_report(body() + padding + b" ")


def test_the_longest_member_id_is_512_bytes() -> None:
    assert parse_report(body(memberID="é" * 256)).member_id == "é" * 256


@given(st.binary(max_size=200))
def test_no_body_makes_the_parser_fail_otherwise(raw: bytes) -> None:
    try:
        parse_report(raw)
    except InvalidReport as error:
        assert str(error)
