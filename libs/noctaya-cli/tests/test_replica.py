"""The life of one replica, on a fake clock and without processes."""

import asyncio
import errno
from collections.abc import AsyncIterator

import pytest
from noctaya_cli.child import Exit
from noctaya_cli.events import EventKind
from noctaya_cli.plan import ContainerPlan
from noctaya_cli.probes import HttpGet, Probe, Probes
from noctaya_cli.replica import Replica, ReplicaPhase

from .fakes import FakeMachine

pytestmark = pytest.mark.looptime
READY = Probes(startup=Probe(HttpGet(), failure_threshold=3), readiness=Probe(HttpGet(), period=1))
PLAN = ContainerPlan(command=("model",), probes=READY, drain=60, grace=70)


@pytest.fixture
async def machine() -> AsyncIterator[FakeMachine]:
    yield FakeMachine()


async def start(machine: FakeMachine, plan: ContainerPlan = PLAN) -> tuple[Replica, asyncio.Task[None]]:
    replica = Replica(plan, name="svc-1", port=20001, host=machine.host(), changed=lambda: None)
    task = asyncio.create_task(replica.run())
    await asyncio.sleep(0.01)
    return replica, task


async def start_ready(machine: FakeMachine, plan: ContainerPlan = PLAN) -> tuple[Replica, asyncio.Task[None]]:
    replica, task = await start(machine, plan)
    machine.children[-1].healthy = True
    await asyncio.sleep(0.3)
    assert phase_of(replica) is ReplicaPhase.READY
    return replica, task


def phase_of(replica: Replica) -> ReplicaPhase:
    return replica.phase


async def finish(replica: Replica, task: asyncio.Task[None]) -> None:
    replica.kill()
    await task


async def test_it_loads_until_the_probes_succeed_and_is_routable_meanwhile(machine: FakeMachine) -> None:
    replica, task = await start(machine)
    assert phase_of(replica) is ReplicaPhase.LOADING
    assert replica.routable
    machine.children[0].healthy = True
    await asyncio.sleep(0.3)
    assert phase_of(replica) is ReplicaPhase.READY
    await finish(replica, task)


async def test_a_replica_that_was_ready_and_is_not_any_more_gets_no_requests(machine: FakeMachine) -> None:
    replica, task = await start_ready(machine)
    machine.children[0].healthy = False
    await asyncio.sleep(4)
    assert phase_of(replica) is ReplicaPhase.LOADING
    assert not replica.routable
    machine.children[0].healthy = True
    await asyncio.sleep(1.5)
    assert replica.routable
    await finish(replica, task)


async def test_a_crash_is_restarted_at_once_and_the_next_after_10_s(machine: FakeMachine) -> None:
    replica, task = await start_ready(machine)
    machine.children[0].exit(Exit(code=3))
    await asyncio.sleep(0.01)
    assert len(machine.children) == 2
    assert machine.doomed == []
    machine.children[1].exit(Exit(code=3))
    await asyncio.sleep(0.01)
    assert phase_of(replica) is ReplicaPhase.BACKOFF
    assert not replica.routable
    assert machine.doomed == ["svc-1: ended 2 times, the last time with exit code 3"]
    await asyncio.sleep(9.9)
    assert len(machine.children) == 2
    await asyncio.sleep(0.2)
    assert len(machine.children) == 3
    await finish(replica, task)


async def test_a_command_that_can_not_run_dooms_the_activation_at_once(machine: FakeMachine) -> None:
    machine.missing = True
    replica, task = await start(machine)
    assert machine.doomed == ["svc-1: model: No such file or directory"]
    await finish(replica, task)


async def test_a_machine_without_room_for_a_process_is_tried_again_later(
    machine: FakeMachine,
) -> None:
    machine.refusal = OSError(errno.ENOSPC, "No space left on device", "svc-1.log")
    replica, task = await start(machine)
    assert machine.doomed == ["svc-1: svc-1.log: No space left on device"]
    assert phase_of(replica) is ReplicaPhase.BACKOFF
    machine.refusal = None
    await asyncio.sleep(10)
    assert phase_of(replica) is ReplicaPhase.LOADING
    await finish(replica, task)


async def test_a_failed_startup_probe_ends_and_restarts_the_process(machine: FakeMachine) -> None:
    replica, task = await start(machine)
    await asyncio.sleep(20.5)
    assert [name for name, _ in machine.children[0].signals] == ["TERM"]
    assert len(machine.children) == 2
    assert replica.reason == "startup probe failed 3 times: status 503"
    await finish(replica, task)


async def test_stop_during_backoff_ends_at_once(machine: FakeMachine) -> None:
    replica, task = await start(machine)
    for _ in range(2):
        machine.children[-1].exit(Exit(code=1))
        await asyncio.sleep(0.01)
    assert phase_of(replica) is ReplicaPhase.BACKOFF
    replica.stop()
    await task
    assert phase_of(replica) is ReplicaPhase.GONE


async def test_a_stopped_replica_drains_until_nothing_is_in_flight(machine: FakeMachine) -> None:
    machine.idle.clear()
    replica, task = await start_ready(machine)
    replica.stop()
    await asyncio.sleep(5)
    assert phase_of(replica) is ReplicaPhase.DRAINING
    assert not replica.routable
    assert machine.children[0].signals == []
    machine.idle.set()
    await task
    assert [name for name, _ in machine.children[0].signals] == ["TERM"]
    assert asyncio.get_running_loop().time() < 10


async def test_a_drain_ends_with_the_drain_time_and_the_grace_includes_it(machine: FakeMachine) -> None:
    machine.idle.clear()
    machine.term_takes = None
    replica, task = await start_ready(machine)
    stopped = asyncio.get_running_loop().time()
    replica.stop()
    await task
    (term, at_term), (kill, at_kill) = machine.children[0].signals
    assert (term, kill) == ("TERM", "KILL")
    assert at_term - stopped == pytest.approx(60, abs=0.1)
    assert at_kill - stopped == pytest.approx(70, abs=0.1)


async def test_a_replica_that_never_was_ready_is_not_drained(machine: FakeMachine) -> None:
    machine.idle.clear()
    replica, task = await start(machine)
    replica.stop()
    await task
    assert EventKind.REPLICA_DRAINING not in machine.kinds
    assert asyncio.get_running_loop().time() < 1


async def test_a_replica_whose_readiness_flaps_is_drained_all_the_same(machine: FakeMachine) -> None:
    machine.idle.clear()
    replica, task = await start_ready(machine)
    machine.children[0].healthy = False
    await asyncio.sleep(4)
    assert phase_of(replica) is ReplicaPhase.LOADING
    replica.stop()
    await asyncio.sleep(5)
    assert machine.children[0].signals == []
    machine.idle.set()
    await task


async def test_a_crash_while_draining_ends_the_drain(machine: FakeMachine) -> None:
    machine.idle.clear()
    replica, task = await start_ready(machine)
    replica.stop()
    await asyncio.sleep(1)
    machine.children[0].exit(Exit(code=9))
    await task
    assert len(machine.children) == 1


async def test_kill_cuts_a_drain_short(machine: FakeMachine) -> None:
    machine.idle.clear()
    machine.term_takes = None
    replica, task = await start_ready(machine)
    replica.stop()
    await asyncio.sleep(1)
    replica.kill()
    await task
    assert [name for name, _ in machine.children[0].signals] == ["KILL"]


async def test_a_cancelled_replica_leaves_no_process(machine: FakeMachine) -> None:
    _, task = await start_ready(machine)
    task.cancel()
    await asyncio.wait({task})
    assert machine.running == []
