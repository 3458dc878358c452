import asyncio
import random

import pytest
from noctaya_api.demand.signal import DemandSignal, DemandState


async def test_a13_changed_returns_at_once_when_the_version_is_newer() -> None:
    signal = DemandSignal(2)
    assert await asyncio.wait_for(signal.changed(-1), 5) == DemandState(2, 0)
    signal.publish(3)
    assert await asyncio.wait_for(signal.changed(0), 5) == DemandState(3, 1)


async def test_a13_a_waiter_gets_the_latest_value_not_every_value() -> None:
    signal = DemandSignal()
    waiting = asyncio.create_task(signal.changed(0))
    await asyncio.sleep(0)
    for demand in (1, 2, 3):
        signal.publish(demand)
    assert await waiting == DemandState(3, 3)


async def test_a13_publishing_the_same_demand_wakes_nobody() -> None:
    signal = DemandSignal(1)
    waiting = asyncio.create_task(signal.changed(0))
    await asyncio.sleep(0)
    signal.publish(1)
    await asyncio.sleep(0)
    assert not waiting.done()
    assert signal.state.version == 0
    waiting.cancel()


async def test_a13_a_change_and_back_is_still_a_change() -> None:
    signal = DemandSignal()
    waiting = asyncio.create_task(signal.changed(0))
    await asyncio.sleep(0)
    signal.publish(1)
    signal.publish(0)
    assert await waiting == DemandState(0, 2)


async def test_a13_activation_edges_are_where_active_flips() -> None:
    signal = DemandSignal()
    edges = []
    for demand in (0, 1, 5, 5, 0, 0, 2):
        before = signal.state.active
        signal.publish(demand)
        if signal.state.active != before:
            edges.append(signal.state.active)
    assert edges == [True, False, True]


async def test_a13_a_cancelled_waiter_leaves_nothing_behind_however_often() -> None:
    signal = DemandSignal()
    for _ in range(3):
        waiting = asyncio.create_task(signal.changed(0))
        await asyncio.sleep(0)
        waiting.cancel()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not signal._waiters
    signal.publish(1)


async def test_cancelling_in_the_moment_of_a_change_loses_no_later_change() -> None:
    signal = DemandSignal()
    one, other = (asyncio.create_task(signal.changed(0)) for _ in range(2))
    await asyncio.sleep(0)
    signal.publish(1)
    one.cancel()
    assert (await other).demand == 1
    again = asyncio.create_task(signal.changed(1))
    await asyncio.sleep(0)
    signal.publish(2)
    assert (await again).demand == 2


async def test_many_readers_of_many_transitions_all_end_at_the_last_value() -> None:
    signal = DemandSignal()
    rng = random.Random(7)
    seen: list[list[int]] = []

    async def read() -> None:
        versions = [-1]
        seen.append(versions)
        while True:
            state = await signal.changed(versions[-1])
            versions.append(state.version)
            if state.demand == 10**6:
                return
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)

    readers = [asyncio.create_task(read()) for _ in range(32)]
    for _ in range(200):
        signal.publish(rng.randrange(5))
        await asyncio.sleep(0)
    signal.publish(10**6)
    await asyncio.wait_for(asyncio.gather(*readers), 30)
    assert all(versions == sorted(set(versions)) for versions in seen)
    assert not signal._waiters


def test_negative_demand_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        DemandSignal(-1)
    with pytest.raises(ValueError, match="negative"):
        DemandSignal().publish(-1)


def test_snapshot_and_state_are_one_object() -> None:
    signal = DemandSignal(3)
    assert signal.snapshot() is signal.state
    assert signal.state.active
