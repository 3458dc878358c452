from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.probe import HttpProbe, Outcome
from noctaya_gateway.readiness import Prober

from .servers import answering, status, until, unused_address

A = Address("10.0.0.1", 8000)
B = Address("10.0.0.2", 8000)
HOUR = 3600.0


class Scripted:
    """A probe that says what it is told to, and counts."""

    def __init__(self, outcome: Outcome = Outcome.REFUSED) -> None:
        self.outcome = outcome
        self.calls: list[Address] = []

    async def __call__(self, address: Address) -> Outcome:
        self.calls.append(address)
        await asyncio.sleep(0)
        return self.outcome


class Rig:
    def __init__(self, probe: Scripted, *, rise: int, fall: int, interval: float, fast: float) -> None:
        self.probe = probe
        self.urgent = False
        self.reconnects = 0
        self.balancer = Balancer()
        self.balancer.set_addresses([A])
        self.prober = Prober(
            balancer=self.balancer,
            probe=probe,
            interval=interval,
            fast_interval=fast,
            rise=rise,
            fall=fall,
            is_urgent=lambda: self.urgent,
            on_reconnect=self._reconnect,
        )

    def _reconnect(self) -> None:
        self.reconnects += 1

    async def probes(self, count: int) -> None:
        """Wait for `count` more probes and their verdicts."""
        goal = len(self.probe.calls) + count
        await until(lambda: len(self.probe.calls) >= goal)
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def rig(
    probe: Scripted, *, rise: int = 1, fall: int = 3, interval: float = 0.005, fast: float = 0.005
) -> AsyncIterator[Rig]:
    made = Rig(probe, rise=rise, fall=fall, interval=interval, fast=fast)
    made.prober.follow()
    try:
        yield made
    finally:
        await made.prober.close()


async def test_g6_an_idle_service_that_others_bring_up_is_noticed() -> None:
    probe = Scripted()
    async with rig(probe) as found:
        await found.probes(2)
        assert not found.prober.ready
        probe.outcome = Outcome.READY
        await until(lambda: found.prober.ready)


async def test_g6_one_failed_probe_never_makes_a_warm_service_cold() -> None:
    probe = Scripted(Outcome.READY)
    async with rig(probe, fall=3, interval=HOUR) as found:
        await until(lambda: found.prober.ready)
        for outcome in (Outcome.BROKEN, Outcome.NOT_READY, Outcome.READY, Outcome.BROKEN, Outcome.BROKEN):
            probe.outcome = outcome
            found.balancer.mark(A, ready=True)
            found.balancer.report_unreachable(A)
            await found.probes(1)
            found.balancer.mark(A, ready=True)
            assert found.prober.ready


async def test_g6_three_failed_probes_in_a_row_do() -> None:
    probe = Scripted(Outcome.READY)
    async with rig(probe) as found:
        await until(lambda: found.prober.ready)
        cold = asyncio.Event()
        found.balancer.subscribe(cold=cold.set)
        before = len(probe.calls)
        probe.outcome = Outcome.BROKEN
        await asyncio.wait_for(cold.wait(), 10)
        assert len(probe.calls) - before >= 3
        assert found.reconnects >= 3


async def test_rise_asks_for_several_good_probes() -> None:
    probe = Scripted(Outcome.READY)
    async with rig(probe, rise=3) as found:
        await until(lambda: found.prober.ready)
        assert len(probe.calls) >= 3


async def test_a_refused_connection_counts_as_no_reconnect() -> None:
    async with rig(Scripted(Outcome.REFUSED)) as found:
        await found.probes(3)
        assert found.reconnects == 0


async def test_g6_an_activation_wakes_the_slow_probes_at_once() -> None:
    probe = Scripted()
    async with rig(probe, interval=HOUR) as found:
        await found.probes(1)
        probe.outcome = Outcome.READY
        found.urgent = True
        found.prober.wake()
        await until(lambda: found.prober.ready)


async def test_g6_a_slow_probe_under_way_does_not_hold_up_an_activation() -> None:
    hanging = asyncio.Event()

    class Hanging(Scripted):
        async def __call__(self, address: Address) -> Outcome:
            self.calls.append(address)
            if len(self.calls) == 1:
                await hanging.wait()
            return Outcome.READY

    async with rig(Hanging(), interval=HOUR) as found:
        await found.probes(1)
        found.prober.wake()
        await until(lambda: found.prober.ready)


async def test_evidence_of_the_data_path_is_checked_at_once_and_flips_nothing_by_itself() -> None:
    probe = Scripted(Outcome.READY)
    async with rig(probe, interval=HOUR, fast=0.005) as found:
        await until(lambda: found.prober.ready)
        before = len(probe.calls)
        found.balancer.report_unreachable(A)
        assert found.prober.ready
        assert found.balancer.pick(trusted=True) is None
        await until(lambda: found.balancer.pick(trusted=True) == A)
        assert len(probe.calls) == before + 1

        probe.outcome = Outcome.REFUSED
        found.balancer.report_unreachable(A)
        await until(lambda: not found.prober.ready)
        assert len(probe.calls) == before + 4, "three probes in a row, all of them fast"


async def test_addresses_that_come_and_go_are_followed() -> None:
    probe = Scripted(Outcome.READY)
    async with rig(probe) as found:
        found.balancer.set_addresses([A, B])
        found.prober.follow()
        await until(lambda: found.balancer.ready_addresses == (A, B))
        found.balancer.set_addresses([B])
        found.prober.follow()
        probe.calls.clear()
        await found.probes(5)
        assert set(probe.calls) == {B}


async def test_a_watcher_that_fails_by_a_fault_of_ours_is_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(Scripted):
        async def __call__(self, address: Address) -> Outcome:
            self.calls.append(address)
            if len(self.calls) == 2:
                raise RuntimeError("bug")
            return self.outcome

    probe = Faulty(Outcome.REFUSED)
    async with rig(probe) as found:
        await found.probes(3)
        probe.outcome = Outcome.READY
        await until(lambda: found.prober.ready)
    assert "a probe watcher failed" in caplog.text


async def test_p9_readiness_is_seen_within_100_ms_of_the_backend_listening() -> None:
    address = unused_address()
    balancer = Balancer()
    balancer.set_addresses([address])
    prober = Prober(
        balancer=balancer,
        probe=HttpProbe(path="/health", host="x", timeout=2.0),
        interval=0.5,
        fast_interval=0.05,
        rise=1,
        fall=3,
        is_urgent=lambda: True,
    )
    prober.follow()
    delays = []
    try:
        for _ in range(5):
            await until(lambda: not balancer.ready)
            async with answering(lambda path: status(200), port=address.port):
                delays.append(await until(lambda: balancer.ready))
            balancer.mark(address, ready=False)
            prober.wake()
    finally:
        await prober.close()
    # Alone on a machine the median is below 50 ms; the bound leaves room for a busy one.
    assert sorted(delays)[2] < 0.3


async def test_g7_the_first_bad_probe_of_a_ready_address_raises_a_doubt_once() -> None:
    probe = Scripted()
    async with rig(probe, fall=1000) as found:
        doubts: list[bool] = []
        found.balancer.subscribe(doubt=lambda: doubts.append(True))
        await found.probes(3)
        assert doubts == [], "an address that was not ready is none to doubt"
        probe.outcome = Outcome.READY
        await until(lambda: found.prober.ready)
        probe.outcome = Outcome.REFUSED
        await found.probes(3)
        assert doubts == [True]
        assert found.prober.ready
