"""A reflector against the server: whatever went wrong, after quiet they agree, and handlers heard sense."""

from __future__ import annotations

import asyncio
import random

import looptime
import pytest
from fake_apiserver import FakeApiServer
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from noctaya_operator import kinds
from noctaya_operator.kinds import SCALED_OBJECTS
from noctaya_operator.kube.objects import key_of
from noctaya_operator.kube.reflector import Reflector, without_managed_fields

from .follower import Follower
from .objects_for_tests import scaled_object

pytestmark = pytest.mark.timeout(600)
"""Virtual hours cost real seconds, on a busy machine more than a minute of them."""

NAMES = st.sampled_from(["a", "b", "c"])
NAMESPACES = ("one", "two", "foreign")
TIMES = st.sampled_from([1, 2, 7])
VERBS = st.sampled_from(["list", "watch"])


class ReflectorMachine(RuleBasedStateMachine):
    namespaces: tuple[str, ...] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop()
        self.loop.run_until_complete(self.start())

    async def start(self) -> None:
        self.server = FakeApiServer(kinds.ALL, history=8)
        self.follower = Follower()
        self.reflector = Reflector(
            self.server.direct_client(), SCALED_OBJECTS, namespaces=self.namespaces, rng=random.Random(7)
        )
        self.reflector.subscribe(self.follower)
        self.task = asyncio.create_task(self.reflector.run())
        self.number = 0

    def teardown(self) -> None:
        try:
            self.become_quiet()
        finally:
            self.task.cancel()
            self.loop.run_until_complete(asyncio.wait({self.task}))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @rule(name=NAMES, namespace=st.sampled_from(NAMESPACES))
    def put(self, name: str, namespace: str) -> None:
        if SCALED_OBJECTS in self.server.api.served:
            self.number += 1
            self.server.put({**scaled_object(name, namespace), "spec": {"number": self.number}})

    @rule(name=NAMES, namespace=st.sampled_from(NAMESPACES))
    def remove(self, name: str, namespace: str) -> None:
        if self.server.find(SCALED_OBJECTS, namespace, name) is not None:
            self.server.remove(SCALED_OBJECTS, namespace, name)

    @rule(name=NAMES, namespace=st.sampled_from(NAMESPACES))
    def replace(self, name: str, namespace: str) -> None:
        self.remove(name, namespace)
        self.put(name, namespace)

    @rule(seconds=st.sampled_from([0.001, 0.3, 3.0, 40.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.pass_time(seconds)

    @rule(status=st.sampled_from([403, 410, 429, 500, 503]), times=TIMES, verb=VERBS)
    def fail(self, status: int, times: int, verb: str) -> None:
        reason = "Expired" if status == 410 else "Injected"
        self.server.faults.fail(status=status, reason=reason, times=times, verb=verb, retry_after=2)

    @rule(times=TIMES, verb=VERBS)
    def hang(self, times: int, verb: str) -> None:
        self.server.faults.hang(times=times, verb=verb)

    @rule(times=TIMES)
    def cut_watches(self, times: int) -> None:
        self.server.faults.cut_watches(times=times)

    @rule(lose=st.booleans())
    def restart(self, lose: bool) -> None:
        self.server.restart(lose_history=lose)

    @rule()
    def go_down(self) -> None:
        self.server.down()

    @rule()
    def come_up(self) -> None:
        self.server.up()

    @rule(
        gone=st.lists(st.tuples(NAMES, st.sampled_from(NAMESPACES)), max_size=3),
        lose=st.booleans(),
    )
    def miss_deletions(self, gone: list[tuple[str, str]], lose: bool) -> None:
        """Settle, so that all is known; then objects go while nobody is connected."""
        self.become_quiet()
        self.server.down()
        for name, namespace in gone:
            self.remove(name, namespace)
        if lose:
            self.server.expire_history()
        self.pass_time(3)
        self.server.up()

    @rule()
    def withdraw(self) -> None:
        self.server.withdraw(SCALED_OBJECTS)

    @rule()
    def serve(self) -> None:
        self.server.serve(SCALED_OBJECTS)

    @rule()
    def become_quiet(self) -> None:
        """Nothing goes wrong any more: within minutes everything is as on the server."""
        self.server.faults.clear()
        self.server.up()
        # The longest chain: a hanging request, then one idle watch, each followed by the longest pause.
        self.pass_time(400)
        served = SCALED_OBJECTS in self.server.api.served
        assert self.reflector.synced.is_set()
        assert self.reflector.absent is not served
        truth = {
            key_of(obj): without_managed_fields(obj)
            for obj in self.server.all(SCALED_OBJECTS)
            if self.namespaces is None or obj["metadata"]["namespace"] in self.namespaces
        }
        assert {key_of(obj): obj for obj in self.reflector.cache} == truth
        assert self.follower.world == truth

    @invariant()
    def what_was_heard_makes_sense(self) -> None:
        assert self.follower.faults == []
        assert self.follower.world == {key_of(obj): obj for obj in self.reflector.cache}

    @invariant()
    def it_lives(self) -> None:
        assert not self.task.done()


class NamespacedReflectorMachine(ReflectorMachine):
    namespaces = ("one", "two")


# A failure is reported as found: shrinking a run of virtual hours would outlast the test's time limit.
FOUND = (Phase.explicit, Phase.reuse, Phase.generate)
TestReflector = ReflectorMachine.TestCase
TestReflector.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, phases=FOUND)
TestNamespacedReflector = NamespacedReflectorMachine.TestCase
TestNamespacedReflector.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, phases=FOUND
)
