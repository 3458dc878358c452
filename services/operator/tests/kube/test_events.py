"""Events written to the fake API server, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator.kube.events import EventRecorder
from noctaya_operator.kube.resources import EVENTS

from .objects_for_tests import pod

pytestmark = pytest.mark.looptime

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


class Rig:
    def __init__(self, **options: Any) -> None:
        self.server = FakeApiServer()
        self.results: list[str] = []
        self.recorder = EventRecorder(
            self.server.direct_client(),
            controller="example.io/c",
            instance="c-1",
            now=lambda: START + timedelta(seconds=asyncio.get_running_loop().time()),
            rng=random.Random(1),
            on_result=self.results.append,
            **options,
        )
        self.about = self.server.put(pod("web"))

    def say(self, reason: str = "Failed", note: str = "it broke") -> None:
        self.recorder.emit(self.about, type="Warning", reason=reason, action="Observe", note=note)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.recorder.run())
        yield
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.server.all(EVENTS)


async def test_an_event_names_its_object_and_its_reporter() -> None:
    rig = Rig()
    async with rig.running():
        rig.say()
        await asyncio.sleep(1)
    [event] = rig.events
    metadata = event.pop("metadata")
    assert (metadata["namespace"], metadata["name"].startswith("web.")) == ("ns", True)
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-11-30T08:00:00.000000Z",
        "reportingController": "example.io/c",
        "reportingInstance": "c-1",
        "type": "Warning",
        "reason": "Failed",
        "action": "Observe",
        "note": "it broke",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "web",
            "uid": rig.about["metadata"]["uid"],
            "resourceVersion": rig.about["metadata"]["resourceVersion"],
        },
    }


async def test_the_same_said_again_becomes_a_series_written_at_most_every_half_minute() -> None:
    rig = Rig()
    async with rig.running():
        for _ in range(100):
            rig.say()
            await asyncio.sleep(1)
        await asyncio.sleep(60)
    [event] = rig.events
    assert event["series"]["count"] == 100
    assert event["series"]["lastObservedTime"] == "2026-11-30T08:01:39.000000Z"
    assert len(rig.server.writes()) <= 6


async def test_something_else_or_the_same_much_later_is_another_event() -> None:
    rig = Rig()
    async with rig.running():
        rig.say()
        rig.say(note="it broke otherwise")
        await asyncio.sleep(400)
        rig.say()
        await asyncio.sleep(1)
    assert len(rig.events) == 3
    assert all("series" not in event for event in rig.events)


async def test_said_many_times_before_the_first_write_is_counted() -> None:
    rig = Rig()
    async with rig.running():
        for _ in range(5):
            rig.say()
        await asyncio.sleep(60)
    [event] = rig.events
    assert event["series"]["count"] == 5


async def test_a_series_whose_event_expired_begins_anew() -> None:
    rig = Rig()
    async with rig.running():
        rig.say()
        await asyncio.sleep(1)
        rig.server.remove(EVENTS, "ns", rig.events[0]["metadata"]["name"])
        rig.say()
        await asyncio.sleep(60)
        rig.say()
        await asyncio.sleep(1)
    assert len(rig.events) == 1


async def test_long_notes_are_cut_to_what_the_api_takes() -> None:
    rig = Rig()
    async with rig.running():
        rig.say(note="ü" * 2000)
        await asyncio.sleep(1)
    note = rig.events[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.startswith("üüü")
    assert note.endswith("…")


async def test_a_passing_outage_loses_nothing_and_a_refusal_is_dropped() -> None:
    rig = Rig()
    async with rig.running():
        rig.server.faults.fail(status=503, times=2)
        rig.say("One")
        await asyncio.sleep(30)
        rig.server.faults.fail(status=403)
        rig.say("Two")
        rig.say("Three")
        await asyncio.sleep(30)
    assert [event["reason"] for event in rig.events] == ["One", "Three"]
    assert rig.results == ["written", "failed", "written"]


async def test_a_long_outage_fills_the_queue_and_stops_nobody() -> None:
    rig = Rig(queue_size=10)
    rig.server.faults.fail(status=500, times=math.inf)
    async with rig.running():
        for number in range(50):
            rig.say(f"Reason{number}")
        assert rig.results.count("dropped") == 40
        rig.server.faults.clear()
        await asyncio.sleep(60)
    assert len(rig.events) == 10


async def test_nothing_emitted_ever_raises() -> None:
    rig = Rig()
    rig.recorder.emit({}, type="Normal", reason="R", action="A", note="n")
    rig.recorder.emit({"metadata": 7}, type="Normal", reason="R", action="A", note="n")
    assert rig.results == ["dropped", "dropped"]


async def test_flush_writes_what_still_waits() -> None:
    rig = Rig()
    rig.say()
    rig.say("Other")
    rig.say("Other")
    await rig.recorder.flush()
    assert [event["reason"] for event in rig.events] == ["Failed", "Other"]
    assert [event.get("series", {}).get("count") for event in rig.events] == [None, 2]


async def test_events_about_cluster_scoped_objects_live_in_default() -> None:
    rig = Rig()
    about = rig.server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    rig.recorder.emit(about, type="Normal", reason="R", action="A", note="n")
    await rig.recorder.flush()
    assert rig.events[0]["metadata"]["namespace"] == "default"
