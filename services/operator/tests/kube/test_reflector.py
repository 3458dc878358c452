"""Reflectors over the fake API server without sockets, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator import kinds
from noctaya_operator.kinds import SCALED_OBJECTS
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.objects import Key, key_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.kube.resources import PODS, STORAGE_CLASSES, Resource

from .follower import Follower
from .objects_for_tests import pod, scaled_object

pytestmark = pytest.mark.looptime


class Rig:
    def __init__(self, resource: Resource = PODS, *, bookmark_interval: float = 60.0, **options: Any) -> None:
        self.server = FakeApiServer(kinds.ALL, bookmark_interval=bookmark_interval)
        self.failures: list[ApiError] = []
        self.reflector = Reflector(
            self.server.direct_client(),
            resource,
            rng=random.Random(1),
            on_failure=lambda resource, error: self.failures.append(error),
            **options,
        )
        self.follower = Follower()
        self.reflector.subscribe(self.follower)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        await self.reflector.synced.wait()
        try:
            yield
        finally:
            assert not task.done(), "the reflector died"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert self.follower.faults == []

    @property
    def names(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.reflector.cache}

    def asked(self, verb: str) -> int:
        return len([request for request in self.server.requests if request.verb == verb])


async def test_what_is_there_and_what_comes_is_cached_and_heard() -> None:
    rig = Rig()
    rig.server.put(pod("a"))
    async with rig.running():
        rig.server.put(pod("b"))
        rig.server.put(pod("b", app="x"))
        rig.server.remove(PODS, "ns", "a")
        await asyncio.sleep(1)
        assert rig.names == {"b"}
        assert rig.follower.heard == [("created", "a"), ("created", "b"), ("changed", "b"), ("deleted", "a")]


async def test_steady_state_asks_for_one_watch_in_five_to_ten_minutes() -> None:
    rig = Rig()
    async with rig.running():
        await asyncio.sleep(3600)
    assert rig.asked("list") == 1
    assert 6 <= rig.asked("watch") <= 13
    assert rig.failures == []


async def test_field_ownership_is_not_kept() -> None:
    rig = Rig()
    async with rig.running():
        await rig.server.direct_client().create(pod(), field_manager="t")
        await asyncio.sleep(1)
        cached = rig.reflector.cache.get(Key("ns", "p"))
    assert cached is not None
    assert "managedFields" not in cached["metadata"]
    assert cached["kind"] == "Pod"


async def test_deletions_missed_while_the_history_was_lost_are_heard() -> None:
    rig = Rig()
    for name in "abc":
        rig.server.put(pod(name))
    async with rig.running():
        rig.server.down()
        rig.server.remove(PODS, "ns", "a")
        rig.server.put(pod("b", app="new"))
        rig.server.put(pod("d"))
        rig.server.expire_history()
        await asyncio.sleep(5)
        rig.server.up()
        await asyncio.sleep(40)
        assert rig.names == {"b", "c", "d"}
        assert rig.follower.heard[3:] == [("deleted", "a"), ("changed", "b"), ("created", "d")]
    assert rig.asked("list") <= 2 + rig.asked("watch")


async def test_an_object_replaced_by_another_of_its_name_is_heard_as_deleted_and_created() -> None:
    rig = Rig()
    rig.server.put(pod("a"))
    async with rig.running():
        rig.server.down()
        rig.server.remove(PODS, "ns", "a")
        rig.server.put(pod("a"))
        rig.server.expire_history()
        rig.server.up()
        await asyncio.sleep(60)
        assert rig.follower.heard == [("created", "a"), ("deleted", "a"), ("created", "a")]


async def test_a_watch_cut_inside_a_line_goes_on_where_it_left_off() -> None:
    rig = Rig()
    async with rig.running():
        rig.server.faults.cut_watches(PODS, times=2)
        rig.server.put(pod("a"))
        rig.server.put(pod("b"))
        await asyncio.sleep(5)
        assert rig.names == {"a", "b"}
        assert rig.follower.heard == [("created", "a"), ("created", "b")]


async def test_a_dead_connection_is_noticed_by_its_silence() -> None:
    rig = Rig(bookmark_interval=math.inf)
    async with rig.running():
        await asyncio.sleep(3600)
        assert 15 <= rig.asked("watch") <= 36
        rig.server.put(pod("a"))
        await asyncio.sleep(1)
        assert rig.names == {"a"}


@pytest.mark.parametrize("status", [429, 500, 503, 403])
async def test_a_storm_of_failures_is_met_with_few_requests_and_survived(status: int) -> None:
    rig = Rig()
    async with rig.running():
        before = len(rig.server.requests)
        rig.server.faults.fail(status=status, times=math.inf)
        rig.server.restart()
        await asyncio.sleep(600)
        assert len(rig.server.requests) - before <= 80, "no hot loop"
        rig.server.put(pod("a"))
        rig.server.faults.clear()
        await asyncio.sleep(60)
        assert rig.names == {"a"}


async def test_retry_after_is_honoured() -> None:
    rig = Rig()
    async with rig.running():
        rig.server.faults.fail(status=429, retry_after=20, verb="watch")
        before = rig.asked("watch")
        rig.server.restart()
        await asyncio.sleep(19)
        assert rig.asked("watch") == before + 1
        await asyncio.sleep(20)
        assert rig.asked("watch") == before + 2


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_hot_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()

    async def ends_at_once(*arguments: object) -> AsyncIterator[bytes]:
        for nothing in list[bytes]():
            yield nothing

    async with rig.running():
        monkeypatch.setattr(rig.server.api.reader, "watch", ends_at_once)
        before = rig.asked("watch")
        rig.server.restart()
        await asyncio.sleep(600)
        assert rig.asked("watch") - before <= 80
        rig.server.put(pod("a"))
        monkeypatch.undo()
        await asyncio.sleep(60)
        assert rig.names == {"a"}


async def test_hanging_requests_are_given_up_and_asked_again() -> None:
    rig = Rig()
    async with rig.running():
        rig.server.faults.hang(verb="list", times=2)
        rig.server.put(pod("a"))
        rig.server.down()
        rig.server.expire_history()
        rig.server.up()
        await asyncio.sleep(120)
        assert rig.names == {"a"}


async def test_a_history_that_went_back_is_noticed_and_listed_again() -> None:
    rig = Rig()
    rig.server.put(pod("a"))
    async with rig.running():
        rig.server.put(pod("b"))
        await asyncio.sleep(1)
        rig.server.api.store.write(PODS, Key("ns", "b"), None)
        rig.server.restore_backup(2)
        await asyncio.sleep(30)
        assert rig.names == {"a"}


async def test_o4_a_kind_that_is_absent_is_synced_and_found_within_a_minute_once_it_is_served() -> None:
    rig = Rig(SCALED_OBJECTS)
    absences: list[bool] = []
    rig.reflector.subscribe_absence(absences.append)
    rig.server.withdraw(SCALED_OBJECTS)
    async with rig.running():
        assert (rig.reflector.absent, len(rig.reflector.cache)) == (True, 0)
        await asyncio.sleep(3600)
        assert 3600 / 45 < rig.asked("list") < 3600 / 19
        rig.server.serve(SCALED_OBJECTS)
        rig.server.put(scaled_object("a"))
        await asyncio.sleep(60)
        assert (rig.reflector.absent, rig.names) == (False, {"a"})
        rig.server.withdraw(SCALED_OBJECTS)
        await asyncio.sleep(1)
        assert (rig.reflector.absent, rig.names) == (True, set())
    assert absences == [True, False, True]


async def test_several_namespaces_are_followed_apart_and_others_not_at_all() -> None:
    rig = Rig(namespaces=["one", "two"])
    for namespace in ("one", "two", "three"):
        rig.server.put(pod("a", namespace))
    async with rig.running():
        rig.server.put(pod("b", "two"))
        rig.server.put(pod("b", "three"))
        await asyncio.sleep(1)
        found = sorted(str(key_of(obj)) for obj in rig.reflector.cache)
        assert found == ["one/a", "two/a", "two/b"]
        assert [obj["metadata"]["name"] for obj in rig.reflector.cache.list("two")] == ["a", "b"]
    assert {request.namespace for request in rig.server.requests} == {"one", "two"}


async def test_cluster_scoped_kinds_are_followed_once_whatever_the_namespaces() -> None:
    rig = Rig(STORAGE_CLASSES, namespaces=["one", "two"])
    async with rig.running():
        assert rig.asked("list") == 1


async def test_a_label_selector_follows_objects_in_and_out() -> None:
    rig = Rig(label_selector="app=mine")
    rig.server.put(pod("a", app="mine"))
    rig.server.put(pod("b", app="other"))
    async with rig.running():
        rig.server.put(pod("b", app="mine"))
        rig.server.put(pod("a", app="other"))
        await asyncio.sleep(1)
        assert rig.names == {"b"}
        assert rig.follower.heard == [("created", "a"), ("created", "b"), ("deleted", "a")]


async def test_o1_one_object_that_fits_nothing_hurts_no_other() -> None:
    def keep(obj: dict[str, Any]) -> dict[str, Any]:
        if obj["metadata"]["name"] == "odd":
            raise TypeError("the hook does not like it")
        return obj

    rig = Rig(keep=keep)
    rig.reflector.add_index("node", lambda obj: [obj["spec"]["nodeName"]])
    rig.server.put({**pod("odd"), "spec": "not even a map"})
    rig.server.put({**pod("strange"), "spec": 7})
    async with rig.running():
        rig.server.put({**pod("a"), "spec": {"nodeName": "n1"}})
        rig.server.put({**pod("odd"), "spec": None})
        await asyncio.sleep(1)
        assert rig.names == {"strange", "a"}
        assert [obj["metadata"]["name"] for obj in rig.reflector.cache.by_index("node", "n1")] == ["a"]


async def test_a_handler_that_fails_does_not_keep_others_from_hearing() -> None:
    rig = Rig()

    def faulty(old: object, new: object) -> None:
        raise ZeroDivisionError

    rig.reflector.subscribe(faulty)
    late = Follower()
    async with rig.running():
        rig.server.put(pod("a"))
        await asyncio.sleep(1)
        rig.reflector.subscribe(late)
        rig.server.put(pod("b"))
        await asyncio.sleep(1)
    assert rig.follower.heard == [("created", "a"), ("created", "b")]
    assert late.heard == [("created", "a"), ("created", "b")], "a late subscriber hears what is there"


async def test_after_a_long_outage_the_server_is_found_again_within_seconds() -> None:
    rig = Rig(STORAGE_CLASSES)
    async with rig.running():
        rig.server.faults.drop(times=math.inf)
        await asyncio.sleep(3600)
        rig.failures.clear()
        await asyncio.sleep(60)
        # Not a hot loop either.
        assert 12 <= len(rig.failures) <= 60
        rig.server.faults.clear()
        rig.server.put(
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "new"}}
        )
        await asyncio.sleep(6)
        assert "new" in rig.names
