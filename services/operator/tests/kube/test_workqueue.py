"""The work queue in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from noctaya_operator.kube.workqueue import QueueShutDown, WorkQueue

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    return [await queue.get() for _ in range(count)]


async def test_a_key_waits_only_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    assert await take(queue, 2) == ["a", "b"]


async def test_a_key_added_while_in_work_comes_back_when_the_work_is_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0, "never in work twice"
    queue.done(key)
    assert len(queue) == 1
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_waiting_workers_get_a_key_each() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    assert sorted(await asyncio.gather(*workers)) == ["a", "b"]


async def test_a_key_meant_for_a_worker_that_was_cancelled_goes_to_another() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_delayed_keys_come_when_due_and_the_earliest_time_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    queue.add_after("b", 5)
    assert (await queue.get(), now()) == ("a", 3)
    queue.done("a")
    assert (await queue.get(), now()) == ("b", 5)
    queue.done("b")
    await asyncio.sleep(60)
    assert len(queue) == 0, "the later times of a are forgotten"


async def test_failures_of_a_key_are_delayed_by_5_ms_doubling_to_1000_s() -> None:
    queue: WorkQueue[str] = WorkQueue()
    delays = [queue.add_rate_limited("a") for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000.0
    assert queue.add_rate_limited("b") == 0.005, "each key has its own"
    queue.forget("a")
    assert (queue.failures("a"), queue.add_rate_limited("a")) == (0, 0.005)


async def test_a_failure_waits_at_least_as_long_as_asked() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.add_rate_limited("a", at_least=7.0) == 7.0
    assert (await queue.get(), now()) == ("a", 7.0)


async def test_a_thousand_failures_do_not_overflow() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert [queue.add_rate_limited("a") for _ in range(5000)][-1] == 1000.0


async def test_lanes_are_served_in_turn() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for number in range(100):
        queue.add(f"storm-{number}", lane="runtime")
    queue.add("mine", lane="service")
    assert "mine" in await take(queue, 2)


async def test_a_key_deep_in_one_lane_is_promoted_by_another() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for number in range(100):
        queue.add(f"key-{number}", lane="runtime")
    queue.add("key-99", lane="service")
    assert len(queue) == 100
    first = await take(queue, 2)
    assert "key-99" in first
    rest = await take(queue, 98)
    assert sorted(first + rest) == sorted(f"key-{number}" for number in range(100)), "and given out once"


async def test_lanes_are_kept_for_keys_added_while_in_work() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", lane="x")
    await queue.get()
    for number in range(10):
        queue.add(f"storm-{number}", lane="runtime")
    queue.add("a", lane="service")
    queue.done("a")
    assert "a" in await take(queue, 2)


async def test_shutting_down_ends_every_worker_and_takes_nothing_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    queue.add_after("late", 1)
    await asyncio.sleep(0)
    queue.shut_down()
    queue.add("a")
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [QueueShutDown] * 3
    with pytest.raises(QueueShutDown):
        await queue.get()
    await asyncio.sleep(10)
    assert len(queue) == 0
