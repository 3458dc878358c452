"""Waiting for a service that is kept: what is told, when it is over, and who is to blame when it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from noctaya_api.keep import Keep, asleep, awake
from noctaya_cli.cluster.keeping import Outcome, TimeIsUp, WaitedInVain, follow
from noctaya_cli.cluster.service_view import view_of

from . import objects

Object = dict[str, Any]
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class World:
    """A cluster of one service that changes with time; `script` says what happens at a second."""

    def __init__(self, keep: Keep) -> None:
        self.elapsed = 0.0
        self.service = objects.llm_service()
        self.service["metadata"]["annotations"] = {"serving.noctaya.io/keep": keep.text}
        self.script: dict[int, Callable[[], None]] = {}
        self.outcome = Outcome(namespace="models", name="chat", keep=keep, changed=True)

    def get(self, path: str) -> Object:
        assert path.endswith("/namespaces/models/llmservices/chat")
        return self.service

    def items(self, path: str, *, labels: str = "", fields: str = "") -> list[Object]:
        raise AssertionError("the service is there: nobody looks around")

    def merge(self, path: str, change: Mapping[str, Any]) -> Object:
        raise AssertionError("waiting writes nothing")

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.elapsed)

    def sleep(self, seconds: float) -> None:
        for second in range(int(self.elapsed) + 1, int(self.elapsed + seconds) + 1):
            self.script.get(second, lambda: None)()
        self.elapsed += seconds

    def follow(self, timeout: float = 600.0) -> list[str]:
        return list(follow(self, self.outcome, timeout=timeout, clock=self.clock, pause=self.sleep))

    def clock(self) -> float:
        return self.elapsed

    def says(self, phase: str, status: str, reason: str, message: str, **keep: Any) -> Callable[[], None]:
        def happen() -> None:
            self.service["status"] |= {"phase": phase, "keep": keep}
            self.service["status"]["conditions"] = [objects.condition("Kept", status, reason, message)]

        return happen

    def breaks(self) -> None:
        self.service["status"]["conditions"].append(
            objects.condition("Degraded", "True", "ImagePullFailed", "no such image")
        )


def test_each_step_is_told_once_and_the_last_one_ends_it() -> None:
    world = World(awake(2))
    seen = {"state": "Awake", "replicas": 2}
    world.script = {
        2: world.says("Loading", "False", "Waking", "0 of at least 2 replicas are ready, kept", **seen),
        30: world.says("Ready", "False", "Waking", "1 of at least 2 replicas are ready, kept", **seen),
        60: world.says("Ready", "True", "Awake", "at least 2 replicas are kept", **seen),
    }
    assert world.follow() == [
        "the operator has not seen it yet",
        "Loading: 0 of at least 2 replicas are ready, kept",
        "Ready: 1 of at least 2 replicas are ready, kept",
        "Ready: at least 2 replicas are kept",
    ]
    assert world.elapsed == 60


def test_what_held_before_is_not_taken_for_what_was_asked_for() -> None:
    world = World(asleep())
    world.says("Ready", "True", "Awake", "at least 1 replica is kept", state="Awake", replicas=1)()
    with pytest.raises(TimeIsUp, match="not within 5 s; last seen: the operator has not seen it yet"):
        world.follow(5)
    assert world.elapsed == 5


def test_more_than_the_service_may_have_is_reached_with_what_it_may_have() -> None:
    world = World(awake(5))
    world.says("Ready", "True", "Awake", "at least 3 replicas are kept", state="Awake", replicas=3)()
    assert world.follow() == ["Ready: at least 3 replicas are kept"]


def test_a_service_that_stays_degraded_ends_the_wait_with_the_remedy() -> None:
    world = World(awake(1))
    world.says("Degraded", "False", "Waking", "0 of at least 1", state="Awake", replicas=1)()
    world.script[10] = world.breaks
    with pytest.raises(
        WaitedInVain, match=r"chat: ImagePullFailed: no such image: Correct `container.image`"
    ):
        world.follow()
    assert 69 <= world.elapsed <= 71


def test_what_is_repaired_within_a_minute_is_waited_for() -> None:
    world = World(awake(1))
    seen = {"state": "Awake", "replicas": 1}
    world.says("Degraded", "False", "Waking", "0 of at least 1", **seen)()
    world.script = {
        10: world.breaks,
        50: world.says("Loading", "False", "Waking", "0 of at least 1", **seen),
        100: world.breaks,
        130: world.says("Ready", "True", "Awake", "kept", **seen),
    }
    assert world.follow()[-1] == "Ready: kept"


def test_somebody_elses_change_ends_the_wait() -> None:
    world = World(awake(1))
    world.script[3] = lambda: world.service["metadata"]["annotations"].update(
        {"serving.noctaya.io/keep": "asleep"}
    )
    with pytest.raises(WaitedInVain, match="somebody else asks for 'asleep' now"):
        world.follow()
    world = World(awake(1))
    world.script[3] = world.service["metadata"]["annotations"].clear
    with pytest.raises(WaitedInVain, match="somebody else took it back"):
        world.follow()


def test_an_end_that_comes_first_is_said() -> None:
    world = World(awake(1, until=NOON + timedelta(seconds=20)))
    with pytest.raises(WaitedInVain, match="over before it was reached"):
        world.follow()
    assert world.elapsed == 20


@pytest.mark.parametrize(
    ("keep", "shown"),
    [
        (None, "-"),
        ({"state": "Awake", "replicas": 2}, "awake 2"),
        ({"state": "Asleep", "replicas": 0}, "asleep"),
        ({"state": "Asleep", "replicas": 0, "until": "2026-11-30T12:25:00Z"}, "asleep, 25m left"),
        ({"state": "Awake", "until": "soon"}, "awake ?"),
    ],
)
def test_a_row_shows_what_a_service_is_kept(keep: Object | None, shown: str) -> None:
    service = objects.llm_service()
    if keep is not None:
        service["status"]["keep"] = keep
    assert view_of(service).kept(NOON) == shown


def test_only_an_annotation_that_cannot_be_read_is_a_problem() -> None:
    for reason, count in (("Waking", 0), ("FallingAsleep", 0), ("InvalidKeep", 1)):
        service = objects.llm_service(conditions=[objects.condition("Kept", "False", reason, "m")])
        assert len(view_of(service).problems) == count
    sleeping = objects.llm_service(conditions=[objects.condition("Ready", "False", "Asleep", "m")])
    assert view_of(sleeping).problems == ()
