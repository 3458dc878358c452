"""Leader election on a Lease of the fake API server, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator.kube.leader import LeaderElector, LeadershipLost
from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import LEASES

pytestmark = pytest.mark.looptime

LEASE = Key("ns", "lock")
START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def now() -> float:
    return asyncio.get_running_loop().time()


class Candidate:
    """A process in the election that records when it led."""

    def __init__(
        self, server: FakeApiServer, identity: str, *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.changes: list[tuple[bool, float]] = []
        self.stopped_at: float | None = None
        self.work_takes = 0.0
        self.elector = LeaderElector(
            server.direct_client(),
            LEASE,
            identity,
            now=clock or (lambda: START + timedelta(seconds=now())),
            rng=random.Random(identity),
            on_change=lambda leading: self.changes.append((leading, round(now(), 3))),
        )
        self.task = asyncio.create_task(self.elector.run(self.lead))

    async def lead(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.work_takes)
            self.stopped_at = now()

    @property
    def leading(self) -> bool:
        return self.elector.leading

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    def vanish(self) -> None:
        """As a killed process: nothing more is written."""
        self.elector._put = self.elector._create = _never  # type: ignore[method-assign, assignment]


async def _never(*arguments: Any) -> Any:
    await asyncio.Event().wait()


@asynccontextmanager
async def election(*identities: str) -> AsyncIterator[tuple[FakeApiServer, list[Candidate]]]:
    server = FakeApiServer()
    candidates: list[Candidate] = []
    for identity in identities:
        candidates.append(Candidate(server, identity))
        await asyncio.sleep(0.1)
    yield server, candidates
    for candidate in candidates:
        await candidate.stop()


def spec(server: FakeApiServer) -> dict[str, Any]:
    lease = server.find(LEASES, "ns", "lock")
    assert lease is not None
    found: dict[str, Any] = lease["spec"]
    return found


async def test_the_first_leads_and_renews_every_two_seconds_in_utc_with_microseconds() -> None:
    async with election("one") as (server, [one]):
        await asyncio.sleep(60)
        assert one.leading
        writes = len(server.writes())
        assert 28 <= writes <= 32
        assert spec(server)["holderIdentity"] == "one"
        assert spec(server)["leaseDurationSeconds"] == 15
        assert spec(server)["acquireTime"] == "2026-11-30T08:00:00.000000Z"
        assert spec(server)["renewTime"] >= "2026-11-30T08:00:58"


async def test_a_released_lease_is_taken_within_milliseconds() -> None:
    async with election("one", "two") as (server, [one, two]):
        await asyncio.sleep(10)
        assert (one.leading, two.leading) == (True, False)
        stopped = now()
        await one.stop()
        await asyncio.sleep(0.05)
        assert two.leading
        assert two.changes[0][1] - stopped < 0.05
        assert spec(server)["leaseTransitions"] == 1


async def test_the_lease_is_released_only_after_the_work_has_stopped() -> None:
    async with election("one", "two") as (_, [one, two]):
        one.work_takes = 3.0
        await asyncio.sleep(1)
        await one.stop()
        await asyncio.sleep(1)
        assert one.stopped_at is not None
        assert two.changes[0][1] >= one.stopped_at


async def test_a_dead_leader_is_replaced_after_one_lease_duration() -> None:
    async with election("one", "two") as (_, [one, two]):
        await asyncio.sleep(30)
        one.vanish()
        died = now()
        await asyncio.sleep(20)
        assert two.leading
        assert 12 <= two.changes[0][1] - died <= 15.1
        one.task.cancel()


async def test_a_leader_that_cannot_renew_stops_before_another_may_start() -> None:
    async with election("one", "two") as (server, [one, two]):
        await asyncio.sleep(10)
        server.faults.fail(status=500, times=math.inf, verb="update")
        await asyncio.wait({one.task})
        assert isinstance(one.task.exception(), LeadershipLost)
        assert one.stopped_at is not None
        server.faults.clear()
        await asyncio.sleep(30)
        assert two.leading
        assert one.stopped_at < two.changes[0][1]


async def test_a_hanging_server_ends_leadership_at_the_deadline() -> None:
    async with election("one") as (server, [one]):
        await asyncio.sleep(10)
        server.faults.hang(times=math.inf)
        began = now()
        await asyncio.wait({one.task})
        assert isinstance(one.task.exception(), LeadershipLost)
        assert now() - began <= 10.1


async def test_short_outages_cost_no_leadership() -> None:
    async with election("one", "two") as (server, [one, two]):
        for _ in range(10):
            await asyncio.sleep(10)
            server.down()
            await asyncio.sleep(6)
            server.up()
        await asyncio.sleep(10)
        assert one.changes == [(True, 0.0)]
        assert two.changes == []


async def test_a_renewal_that_went_through_unheard_is_not_a_loss() -> None:
    async with election("one") as (server, [one]):
        await asyncio.sleep(10)
        lease = server.find(LEASES, "ns", "lock")
        assert lease is not None
        server.put(lease)
        await asyncio.sleep(10)
        assert one.changes == [(True, 0.0)]


async def test_a_lease_taken_by_force_ends_leadership_at_once() -> None:
    async with election("one") as (server, [one]):
        await asyncio.sleep(10)
        lease = server.find(LEASES, "ns", "lock")
        assert lease is not None
        lease["spec"]["holderIdentity"] = "thief"
        server.put(lease)
        await asyncio.wait({one.task})
        assert isinstance(one.task.exception(), LeadershipLost)
        assert spec(server)["holderIdentity"] == "thief", "and nothing of the thief's is overwritten"


async def test_a_deleted_lease_is_made_anew() -> None:
    async with election("one", "two") as (server, [one, two]):
        await asyncio.sleep(10)
        server.remove(LEASES, "ns", "lock")
        await asyncio.sleep(10)
        assert [one.leading, two.leading].count(True) == 1
        assert spec(server)["holderIdentity"] in {"one", "two"}


@pytest.mark.parametrize("skew", [timedelta(hours=5), timedelta(hours=-5)])
async def test_wrong_wall_clocks_change_nothing(skew: timedelta) -> None:
    server = FakeApiServer()
    one = Candidate(server, "one", clock=lambda: START + skew + timedelta(seconds=now()))
    await asyncio.sleep(1)
    two = Candidate(server, "two")
    await asyncio.sleep(300)
    assert (one.leading, two.changes) == (True, [])
    await one.stop()
    await asyncio.sleep(1)
    assert two.leading
    await two.stop()


async def test_a_lease_left_by_a_process_long_gone_is_waited_for_and_then_taken() -> None:
    server = FakeApiServer()
    server.put(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": "ns", "name": "lock"},
            "spec": {
                "holderIdentity": "gone",
                "leaseDurationSeconds": 15,
                "renewTime": "2020-01-01T00:00:00Z",
            },
        }
    )
    one = Candidate(server, "one")
    await asyncio.sleep(14.9)
    assert not one.leading
    await asyncio.sleep(3)
    assert one.leading
    await one.stop()
    assert spec(server)["holderIdentity"] == ""


async def test_a_candidate_that_may_not_watch_still_takes_over_by_asking() -> None:
    server = FakeApiServer()
    server.faults.fail(status=403, times=math.inf, verb="watch")
    one, two = Candidate(server, "one"), Candidate(server, "two")
    await asyncio.sleep(5)
    leader, other = (one, two) if one.leading else (two, one)
    await leader.stop()
    await asyncio.sleep(3)
    assert other.leading
    await other.stop()


async def test_there_is_never_more_than_one_leader_among_five_in_trouble() -> None:
    server = FakeApiServer()
    rng = random.Random(3)
    candidates = [Candidate(server, f"c{number}") for number in range(5)]
    for step in range(400):
        await asyncio.sleep(rng.uniform(0.1, 4))
        assert sum(candidate.leading for candidate in candidates) <= 1
        match rng.randrange(8):
            case 0:
                server.restart(lose_history=True)
            case 1:
                server.faults.fail(times=rng.randrange(1, 6), verb="update")
            case 2:
                server.faults.hang(times=rng.randrange(1, 3))
            case 3:
                victim = rng.randrange(5)
                await candidates[victim].stop()
                candidates[victim] = Candidate(server, f"c{victim}-{step}")
            case 4:
                server.down()
                await asyncio.sleep(rng.uniform(0, 12))
                server.up()
        for number, candidate in enumerate(candidates):
            if candidate.task.done():
                candidates[number] = Candidate(server, f"c{number}-{step}-again")
    server.faults.clear()
    await asyncio.sleep(60)
    assert sum(candidate.leading for candidate in candidates) == 1
    for candidate in candidates:
        await candidate.stop()


async def test_work_that_returns_or_fails_ends_the_lease() -> None:
    server = FakeApiServer()

    async def fails() -> None:
        raise ZeroDivisionError

    async def returns() -> None:
        await asyncio.sleep(1)

    elector = LeaderElector(server.direct_client(), LEASE, "one")
    await elector.run(returns)
    assert spec(server)["holderIdentity"] == ""
    with pytest.raises(ZeroDivisionError):
        await elector.run(fails)
    assert (spec(server)["holderIdentity"], elector.leading) == ("", False)
