"""The load against a server of our own: what each end of a request is called."""

from __future__ import annotations

import pytest
from answering import DONE, ERROR, TOKEN, serving
from noctaya_chaos.load import CUT, OK, UNREACHED, MixedLoad, of_stream
from noctaya_scenarios.waiting import until


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, TOKEN + DONE, OK),
        (200, TOKEN, CUT),
        (200, b"", CUT),
        (200, TOKEN + ERROR + DONE, "error event backend_interrupted"),
        (503, b"{}", "status 503"),
    ],
)
def test_the_end_of_a_stream_has_a_name(status: int, body: bytes, result: str) -> None:
    with serving(status, body) as client:
        assert of_stream(client.stream().result(20)) == result


def test_the_load_asks_streams_and_wakes_only_what_sleeps() -> None:
    asleep: list[bool | None] = [None, True, False]
    looks: list[bool | None] = []

    def look() -> bool | None:
        looks.append(asleep[len(looks) % 3])
        return looks[-1]

    with serving(200, TOKEN + DONE) as client:
        with MixedLoad(client, client, asleep=look) as load:
            until(lambda: len(looks) >= 4, within=30, what="four looks")
        outcomes = load.since(0.0)
    assert {each.kind for each in outcomes} == {"json", "stream", "cold"}
    assert {each.result for each in outcomes} == {OK}
    assert sum(each.kind == "cold" for each in outcomes) == sum(look is True for look in looks)
    assert load.since(max(each.ended for each in outcomes) + 1) == []


def test_nobody_there_is_no_connection() -> None:
    with serving(200, b"") as client:
        pass
    with MixedLoad(client, client, asleep=lambda: True) as load:
        until(lambda: len({each.kind for each in load.since(0.0)}) == 3, within=30, what="one of each")
    assert {each.result for each in load.since(0.0)} == {UNREACHED}
