"""Two operator processes and one Lease: hand-over when the leader stops, and when it is killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from noctaya_apiserver import wait_for
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World

LEASE = "/apis/coordination.k8s.io/v1/namespaces/noctaya-system/leases/6d7012cb.noctaya.io"
DURATION = 14.0
FLAGS = (
    "--leader-elect",
    "--leader-election-namespace=noctaya-system",
    f"--lease-duration={DURATION:g}s",
    "--renew-deadline=10s",
    "--retry-period=1s",
)
BUSY = 8.0
"""What a busy machine may add to a bound, in seconds."""

Start = Callable[..., OperatorProcess]


def holder(world: World) -> str:
    lease = world.api.find(LEASE) or {"spec": {}}
    return lease["spec"].get("holderIdentity") or ""


def leads(operator: OperatorProcess) -> bool:
    return operator.metric("leader_election_master_status") == 1


@pytest.fixture
def pair(start_operator: Start, bench: World) -> tuple[OperatorProcess, OperatorProcess]:
    """A leader and a standby, with one service converged."""
    first = start_operator(*FLAGS)
    wait_for(lambda: leads(first), what="the first operator leading")
    second = start_operator(*FLAGS)
    assert not leads(second)
    bench.create()
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    return first, second


def await_new_holder(world: World, old: str, *, within: float) -> float:
    """Wait for another holder; returns how long that took, in seconds."""
    began = time.monotonic()
    wait_for(lambda: holder(world) not in {"", old}, within=within, every=0.02, what="a new leader")
    return time.monotonic() - began


def check_second_works(world: World, before: dict[str, str]) -> None:
    """The new leader does what came up meanwhile, and made nothing anew."""
    world.create("after")
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "after")
    assert uids(world) == before


def uids(world: World) -> dict[str, str]:
    return {name: obj["metadata"]["uid"] for name, obj in world.objects(of="chat").items()}


def test_a_leader_that_stops_hands_over_without_waiting_for_its_lease(
    pair: tuple[OperatorProcess, OperatorProcess], bench: World
) -> None:
    first, second = pair
    old, before = holder(bench), uids(bench)
    assert first.stop() == 0
    # Three seconds where nothing else runs; in any case long before the lease would have run out.
    await_new_holder(bench, old, within=3.0 + BUSY)
    wait_for(lambda: leads(second), what="the second operator leading")
    check_second_works(bench, before)


def test_a_killed_leader_is_replaced_after_one_lease_duration(
    pair: tuple[OperatorProcess, OperatorProcess], bench: World
) -> None:
    first, second = pair
    old, before = holder(bench), uids(bench)
    first.kill()
    took = await_new_holder(bench, old, within=DURATION + BUSY)
    # Not before the lease had run out, which the dead one renewed a retry period ago, or a busy machine's.
    assert took > DURATION - BUSY
    wait_for(lambda: leads(second), what="the second operator leading")
    check_second_works(bench, before)


def test_a_standby_is_ready_and_writes_nothing(
    pair: tuple[OperatorProcess, OperatorProcess], bench: World
) -> None:
    _, second = pair
    assert second.ready()
    assert second.metric("rest_client_requests_total", method="POST") == 0
    assert second.metric("rest_client_requests_total", method="PATCH") == 0


def test_a_leader_that_loses_the_lease_stops_working_and_ends(start_operator: Start, bench: World) -> None:
    operator = start_operator(*FLAGS)
    wait_for(lambda: leads(operator), what="the operator leading")
    stolen = {"holderIdentity": "somebody-else", "renewTime": "2100-01-01T00:00:00.000000Z"}
    bench.api.merge(LEASE, {"spec": stolen})
    assert operator.child.wait(40.0) == 1  # ten seconds of it are the renew deadline
    assert holder(bench) == "somebody-else"
    bench.api.delete(LEASE)
