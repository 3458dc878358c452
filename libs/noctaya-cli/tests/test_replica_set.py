"""As many replicas as asked for, whatever happens: a state machine on a fake clock."""

import asyncio
import itertools
from typing import Any

import looptime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_cli.child import Exit
from noctaya_cli.plan import ContainerPlan
from noctaya_cli.ports import PortPool
from noctaya_cli.probes import HttpGet, Probe, Probes
from noctaya_cli.replica_set import ReplicaSet

from .fakes import FakeMachine

PROBES = Probes(startup=Probe(HttpGet(), failure_threshold=5), readiness=Probe(HttpGet(), period=2))
PLAN = ContainerPlan(command=("model",), probes=PROBES, drain=5, grace=15)


class CountingPorts(PortPool):
    """Ports without sockets; knows which are out."""

    def __init__(self) -> None:
        super().__init__()
        self.out: set[int] = set()
        self._next = itertools.count(1)

    def take(self) -> int:
        port = next(self._next)
        self.out.add(port)
        return port

    def give_back(self, port: int) -> None:
        self.out.remove(port)


def replica_set(machine: FakeMachine, ports: PortPool) -> ReplicaSet:
    return ReplicaSet(PLAN, service="svc", host=machine.host(), ports=ports, changed=lambda: None)


@pytest.mark.looptime
async def test_scale_in_takes_replicas_that_are_not_ready_first_then_the_youngest() -> None:
    machine = FakeMachine()
    replicas = replica_set(machine, CountingPorts())
    replicas.scale(3)
    await asyncio.sleep(0.01)
    for index in (0, 2):
        machine.children[index].healthy = True
    await asyncio.sleep(0.3)
    replicas.scale(2)
    assert [replica.name for replica in replicas.live] == ["svc-1", "svc-3"]
    replicas.scale(1)
    assert [replica.name for replica in replicas.live] == ["svc-1"]
    await replicas.close()


@pytest.mark.looptime
async def test_a_replica_that_drains_does_not_count_and_keeps_its_port() -> None:
    machine, ports = FakeMachine(), CountingPorts()
    machine.idle.clear()
    replicas = replica_set(machine, ports)
    replicas.scale(1)
    await asyncio.sleep(0.01)
    machine.children[0].healthy = True
    await asyncio.sleep(0.3)
    replicas.scale(0)
    replicas.scale(1)
    await asyncio.sleep(0.01)
    assert len(machine.running) == 2
    assert len(ports.out) == 2
    assert replicas.endpoints == [f"127.0.0.1:{machine.children[1].port}"]
    await replicas.close()
    assert ports.out == set()


@pytest.mark.looptime
async def test_after_close_nothing_is_started() -> None:
    machine = FakeMachine()
    replicas = replica_set(machine, CountingPorts())
    await replicas.close()
    replicas.scale(3)
    assert replicas.replicas == []


ACTION = st.one_of(
    st.tuples(st.just("scale"), st.integers(0, 4)),
    st.tuples(st.just("pass"), st.floats(0, 30)),
    st.tuples(st.just("healthy"), st.integers(0, 8)),
    st.tuples(st.just("unhealthy"), st.integers(0, 8)),
    st.tuples(st.just("crash"), st.integers(0, 8)),
    st.tuples(st.just("missing"), st.booleans()),
    st.tuples(st.just("term takes"), st.sampled_from([0.0, 3.0, None])),
    st.tuples(st.just("idle"), st.booleans()),
)


async def play(actions: list[tuple[str, Any]]) -> None:
    machine, ports = FakeMachine(), CountingPorts()
    replicas = replica_set(machine, ports)
    wanted = 0
    for name, value in actions:
        running = machine.running
        if name == "scale":
            wanted = value
            replicas.scale(wanted)
        elif name == "pass":
            await asyncio.sleep(value)
        elif name == "missing":
            machine.missing = value
        elif name == "term takes":
            machine.term_takes = value
        elif name == "idle":
            machine.idle.set() if value else machine.idle.clear()
        elif running:
            child = running[value % len(running)]
            if name == "crash":
                child.exit(Exit(code=1))
            else:
                child.healthy = name == "healthy"
        await asyncio.sleep(0)
        assert len(replicas.live) == wanted
        assert len(ports.out) == len(replicas.replicas)
        assert len(machine.running) <= len(replicas.replicas)
        assert len({child.port for child in machine.running}) == len(machine.running)
        live_ports = {replica.port for replica in replicas.live}
        assert {int(endpoint.rpartition(":")[2]) for endpoint in replicas.endpoints} <= live_ports
        assert replicas.ready <= wanted
    began = asyncio.get_running_loop().time()
    await replicas.close()
    assert asyncio.get_running_loop().time() - began <= PLAN.grace + 1
    assert machine.running == []
    assert ports.out == set()
    for child in machine.children:
        signals = [name for name, _ in child.signals]
        assert signals in ([], ["TERM"], ["TERM", "KILL"])
        if len(child.signals) == 2:
            assert child.signals[1][1] - child.signals[0][1] >= 2.0


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTION, max_size=25))
def test_whatever_happens_the_wanted_replicas_are_kept_and_nothing_is_left(
    actions: list[tuple[str, Any]],
) -> None:
    loop = looptime.new_event_loop(start=0)
    try:
        loop.run_until_complete(play(actions))
    finally:
        loop.close()
