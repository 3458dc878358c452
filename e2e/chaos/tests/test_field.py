"""What the field says of its services: Pods that have ended hold nothing, what is missed is a complaint."""

from __future__ import annotations

from typing import Any

import httpx
from noctaya_chaos.field import COLD, WARM, Field
from noctaya_chaos.run import Watcher
from noctaya_scenarios.waiting import until


class Scene:
    """A namespace whose backend Pods and last activation are given."""

    namespace = "chaos"

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.wanted = 0
        self.records: list[dict[str, Any]] = [{}]
        self.away = False

    def replicas(self, name: str) -> int:
        if self.away:
            raise httpx.ConnectError("nobody is there")
        return self.wanted

    def pods(self, part: str, name: str) -> list[dict[str, Any]]:
        return [
            {
                "metadata": {"name": f"{part}-{number}"},
                "spec": {"nodeName": "node-1"},
                "status": {"phase": phase},
            }
            for number, phase in enumerate(self.phases)
        ]

    def ready_pods(self, part: str, name: str) -> list[str]:
        return [f"{part}-{number}" for number, phase in enumerate(self.phases) if phase == "Running"]

    def status(self, name: str) -> dict[str, Any]:
        if self.away:
            raise httpx.ConnectError("nobody is there")
        record = self.records[0] if len(self.records) == 1 else self.records.pop(0)
        return {"lastActivation": record}


class Lab:
    """Two gateways a service."""

    gateways = 2


def field(scene: Scene) -> Field:
    return Field(Lab(), scene)  # type: ignore[arg-type]


def test_an_evicted_pod_keeps_no_service_awake() -> None:
    scene = Scene()
    scene.phases = ["Failed", "Succeeded"]
    assert field(scene).asleep() is True
    scene.phases = ["Failed", "Running"]
    assert field(scene).asleep() is False
    scene.phases, scene.wanted = [], 1
    assert field(scene).at_zero(COLD) is False
    scene.away = True
    assert field(scene).asleep() is None


def test_a_service_has_left_a_node_when_nothing_of_it_runs_there() -> None:
    scene = Scene()
    scene.phases = ["Running", "Failed"]
    assert not field(scene).left("node-1")
    scene.phases = ["Failed"]
    assert not field(scene).left("node-1"), "it has to be elsewhere as well"


def test_what_is_expected_in_vain_is_a_complaint_once() -> None:
    here = field(Scene())
    assert here.expect(lambda: True, within=1, what="something")
    assert not here.expect(lambda: False, within=0.1, what="something else")
    assert here.complaints() == ["not within 0.1 s: something else"]
    assert here.complaints() == []


def test_the_watcher_keeps_each_new_cold_start_as_it_was_told_last() -> None:
    def record(pod: str, **more: str) -> dict[str, Any]:
        return {"pod": pod, "outcome": "InProgress", "requested": "2026-11-30T12:00:00Z", **more}

    scene = Scene()
    scene.records = [
        record("old"),
        record("old"),
        record("one"),
        record("one", outcome="Succeeded"),
        record("two"),
    ]
    scene.wanted = 1
    with Watcher(field(scene)) as watcher:
        until(lambda: len(watcher.timelines) == 2 and watcher.seen, within=30, what="two cold starts")
        kept = {each.pod: each.succeeded for each in watcher.timelines}
    assert kept == {"one": True, "two": False}
    assert set(watcher.seen) == {1}
    scene.away = True
    assert field(scene).activation(WARM) == {}
