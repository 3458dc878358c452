"""The document of `/noctaya/activations`, written by gateways and read by the operator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.gateway_activations import (
    ActivationList,
    ListedActivation,
    NotAnActivationList,
    parse_activation_list,
)

ID = "0af7651916cd43dd8448eb211c80319c"
NOW = datetime(2026, 11, 30, 8, 0, 0, 123_000, tzinfo=UTC)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
activations = st.builds(
    ListedActivation,
    id=st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}"),
    traceparent=st.none() | st.just(f"00-{ID}-b7ad6b7169203331-01"),
    requested=moments,
    told=st.none() | moments,
    ready=st.none() | moments,
    first_byte=st.none() | moments,
    ended=st.none() | moments,
    outcome=st.none() | st.sampled_from(["ready", "expired", "failed"]),
)


def test_the_wire_form_is_that_of_the_contract() -> None:
    listed = ListedActivation(id=ID, requested=NOW, first_byte=NOW + timedelta(seconds=2), outcome="ready")
    assert ActivationList(now=NOW, activations=[listed]).to_json() == (
        b'{"now":"2026-11-30T08:00:00.123Z","activations":[{"id":"' + ID.encode() + b'",'
        b'"requested":"2026-11-30T08:00:00.123Z","firstByte":"2026-11-30T08:00:02.123Z","outcome":"ready"}]}'
    )


@given(st.builds(ActivationList, now=moments, activations=st.lists(activations, max_size=8)))
def test_what_is_written_is_read(told: ActivationList) -> None:
    assert parse_activation_list(told.to_json()) == told


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(NotAnActivationList):
        parse_activation_list(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"now": "2026-11-30T08:00:00Z"}',
        b'{"now": "2026-11-30T08:00:00", "activations": []}',
        b'{"now": "2026-11-30T08:00:00Z", "activations": [{"id": "x", "requested": "2026-11-30T08:00:00Z"}]}',
    ],
)
def test_the_refusal_names_the_field(body: bytes) -> None:
    with pytest.raises(NotAnActivationList, match=r"activations|now"):
        parse_activation_list(body)


def test_a_newer_gateway_may_tell_more() -> None:
    more = b'{"now": "2026-11-30T08:00:00Z", "activations": [], "member": "gw/1"}'
    assert parse_activation_list(more).activations == []
