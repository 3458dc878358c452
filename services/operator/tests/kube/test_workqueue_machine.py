"""The work queue against a model: no key is lost, doubled or starved, whatever the order of calls."""

from __future__ import annotations

import asyncio

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from noctaya_operator.kube.workqueue import WorkQueue

KEYS = st.sampled_from("abcdef")
LANES = st.sampled_from(["events", "runtimes", "later"])
DELAYS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0])


class QueueMachine(RuleBasedStateMachine):
    """Keys with the lanes they wait in, those in work with lanes they were added in, those due later."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.loop.time)
        self.waiting: dict[str, set[str]] = {}
        self.working: dict[str, set[str]] = {}
        self.due: dict[str, tuple[float, str]] = {}
        self.failures: dict[str, int] = {}
        self.passed_over: dict[str, int] = {}

    def teardown(self) -> None:
        self.queue.shut_down()
        self.loop.close()

    def model_add(self, key: str, lane: str) -> None:
        target = self.working if key in self.working else self.waiting
        target.setdefault(key, set()).add(lane)

    def model_add_after(self, key: str, delay: float, lane: str) -> None:
        if delay <= 0:
            self.model_add(key, lane)
            return
        due = self.loop.time() + delay
        if key not in self.due or due < self.due[key][0]:
            self.due[key] = (due, lane)

    async def calling(self, name: str, *arguments: object, **options: object) -> object:
        return getattr(self.queue, name)(*arguments, **options)

    def call(self, name: str, *arguments: object, **options: object) -> object:
        return self.loop.run_until_complete(self.calling(name, *arguments, **options))

    @rule(key=KEYS, lane=LANES)
    def add(self, key: str, lane: str) -> None:
        self.call("add", key, lane=lane)
        self.model_add(key, lane)

    @rule(key=KEYS, delay=DELAYS, lane=LANES)
    def add_after(self, key: str, delay: float, lane: str) -> None:
        self.call("add_after", key, delay, lane=lane)
        self.model_add_after(key, delay, lane)

    @precondition(lambda self: self.waiting)
    @rule()
    def take(self) -> None:
        key = self.loop.run_until_complete(self.queue.get())
        lanes = self.waiting.pop(key)
        assert key not in self.working
        self.working[key] = set()
        self.passed_over.pop(key, None)
        first_in_lane = {lane for others in self.waiting.values() for lane in others} - lanes
        for other, its_lanes in self.waiting.items():
            alone = all(
                not (its_lanes & third_lanes) for third, third_lanes in self.waiting.items() if third != other
            )
            if alone and its_lanes & first_in_lane:
                self.passed_over[other] = self.passed_over.get(other, 0) + 1

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.call("forget", key)
        self.failures.pop(key, None)
        self.finish(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        expected = min(1000.0, 0.005 * 2 ** self.failures.get(key, 0))
        assert self.call("add_rate_limited", key, lane="later") == expected
        self.failures[key] = self.failures.get(key, 0) + 1
        self.model_add_after(key, expected, "later")
        self.finish(key)

    def finish(self, key: str) -> None:
        self.call("done", key)
        lanes = self.working.pop(key)
        for lane in lanes:
            self.model_add(key, lane)

    @rule(seconds=st.sampled_from([0.001, 0.5, 1.0, 5.0, 1000.0]))
    def pass_time(self, seconds: float) -> None:
        end = self.loop.time() + seconds
        self.loop.run_until_complete(asyncio.sleep(seconds))
        for key, (due, lane) in list(self.due.items()):
            if due <= end:
                del self.due[key]
                self.model_add(key, lane)

    @invariant()
    def as_many_wait_as_should(self) -> None:
        assert len(self.queue) == len(self.waiting)
        assert len(self.queue.in_work()) == len(self.working)

    @invariant()
    def nobody_alone_in_a_lane_is_passed_over_for_long(self) -> None:
        assert all(count <= 3 for count in self.passed_over.values())


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
