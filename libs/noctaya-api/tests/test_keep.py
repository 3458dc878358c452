"""The annotation `keep` as text: what it may say, and that what we write we read."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api import names
from noctaya_api.keep import MOST, Keep, KeepError, KeepState, asleep, awake, keep_of, parse_keep

EVENING = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
ends = st.none() | st.datetimes(
    min_value=datetime(1000, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)
).map(lambda moment: moment.replace(microsecond=0))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("awake", awake(1)),
        ("awake 3", awake(3)),
        ("  awake\t2\n", awake(2)),
        ("awake until 2026-11-30T18:00:00Z", awake(1, until=EVENING)),
        ("awake 2 until 2026-11-30T19:00:00+01:00", awake(2, until=EVENING)),
        ("asleep", asleep()),
        ("asleep until 2026-11-30T18:00:00.000Z", asleep(until=EVENING)),
    ],
)
def test_what_people_write_is_read(text: str, meant: Keep) -> None:
    assert parse_keep(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Awake",
        "awake -1",
        "awake 1.5",
        "awake 0",
        f"awake {MOST + 1}",
        "awake two",
        "asleep 1",
        "asleep 30m",
        "awake until",
        "awake until 2026-11-30",
        "awake until 2026-11-30T18:00:00",
        "awake until 2026-13-30T18:00:00Z",
        "awake until 0001-01-01T00:00:00+14:00",
        "awake ٣",
        "awake 1" + " " * 300,
    ],
)
def test_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(KeepError) as refused:
        parse_keep(text)
    assert repr(text)[1:30].strip("'") in str(refused.value) or "is no time" in str(refused.value)
    assert len(str(refused.value)) < 1000


@given(st.integers(1, MOST), ends, st.booleans())
def test_what_is_written_is_read_as_it_was_meant(replicas: int, until: datetime | None, sleeps: bool) -> None:
    meant = asleep(until=until) if sleeps else awake(replicas, until=until)
    assert parse_keep(meant.text) == meant


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        parse_keep(text)
    except KeepError as error:
        assert str(error)


def test_it_holds_until_its_end_and_no_longer() -> None:
    local = timezone(timedelta(hours=9))
    wish = awake(1, until=EVENING)
    assert wish.holds((EVENING - timedelta(seconds=1)).astimezone(local))
    assert not wish.holds(EVENING.astimezone(local))
    assert asleep().holds(EVENING)


def test_a_service_without_the_annotation_wants_nothing() -> None:
    assert keep_of({}) is None
    assert keep_of({"other": "awake"}) is None
    assert keep_of({names.ANNOTATION_KEEP: "asleep"}) == Keep(state=KeepState.ASLEEP)
