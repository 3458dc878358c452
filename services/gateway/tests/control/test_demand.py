from __future__ import annotations

import asyncio
import random

from noctaya_api.demand.signal import DemandSignal
from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission
from noctaya_gateway.demand import SETTLE, DemandMeter, MeterSource

from .clock import ManualTimers


class Rig:
    def __init__(self) -> None:
        self.timers = ManualTimers()
        self.ready = False
        self.admission = Admission(100)
        self.activation = Activation(
            timers=self.timers, timeout=100.0, grace=15.0, is_ready=lambda: self.ready
        )
        self.signal = DemandSignal()
        self.meter = DemandMeter(
            admission=self.admission, activation=self.activation, signal=self.signal, timers=self.timers
        )
        self.admission.notify(self.meter.update)
        self.activation.subscribe(change=self.meter.update)


def test_demand_is_pending_or_one_for_a_lease_or_grace() -> None:
    rig = Rig()
    slots = [rig.admission.admit(), rig.admission.admit()]
    rig.activation.begin()
    assert rig.meter.effective == 2

    for slot in slots:
        slot.release()
    assert rig.meter.effective == 1, "the lease alone"

    rig.ready = True
    rig.activation.became_ready()
    assert rig.meter.effective == 1, "the grace alone"
    rig.timers.advance(15.0)
    assert rig.meter.effective == 0


def test_g11_of_contracts_a_refused_cold_request_still_leaves_demand_1() -> None:
    rig = Rig()
    slot = rig.admission.admit()
    rig.activation.begin()
    slot.release()
    assert rig.meter.effective == 1


def test_the_rise_from_zero_is_published_at_once() -> None:
    rig = Rig()
    rig.admission.admit()
    assert rig.signal.state.demand == 1


def test_other_changes_are_published_within_the_settling_time() -> None:
    rig = Rig()
    slots = [rig.admission.admit() for _ in range(5)]
    assert rig.signal.state.demand == 1
    rig.timers.advance(SETTLE)
    assert rig.signal.state.demand == 5

    for slot in slots:
        slot.release()
    rig.timers.advance(SETTLE)
    assert rig.signal.state.demand == 0


def test_thousands_of_short_requests_are_few_publications() -> None:
    rig = Rig()
    for _ in range(2000):
        rig.admission.admit().release()
        rig.timers.advance(0.0005)
    rig.timers.advance(SETTLE)
    assert rig.signal.state.version <= 2 * 1.0 / SETTLE + 2
    assert rig.signal.state.demand == 0


def test_s4_a_reader_gets_the_exact_demand_and_one_snapshot() -> None:
    rig = Rig()
    source = MeterSource(rig.meter)
    slots = [rig.admission.admit() for _ in range(3)]
    state = source.snapshot()
    assert (state.demand, state.active) == (3, True)

    for slot in slots:
        slot.release()
    state = source.snapshot()
    assert (state.demand, state.active) == (0, False)


async def test_a_waiter_hears_of_the_rise() -> None:
    rig = Rig()
    source = MeterSource(rig.meter)
    version = source.snapshot().version
    waiting = asyncio.create_task(source.changed(version))
    await asyncio.sleep(0)
    rig.admission.admit()
    state = await asyncio.wait_for(waiting, 5)
    assert state.active


def test_activation_events_count_rises_only_and_warm_ones_too() -> None:
    rig = Rig()
    first = rig.admission.admit()
    second = rig.admission.admit()
    first.release()
    second.release()
    rig.ready = True
    rig.admission.admit().release()
    assert rig.meter.activations == 2


async def test_g14_of_contracts_many_workers_converge_to_published_zero() -> None:
    loop = asyncio.get_running_loop()
    admission = Admission(64)
    activation = Activation(timers=loop, timeout=100.0, grace=0.0, is_ready=lambda: True)
    signal = DemandSignal()
    meter = DemandMeter(admission=admission, activation=activation, signal=signal, timers=loop)
    admission.notify(meter.update)
    chance = random.Random(14)

    async def worker() -> None:
        for _ in range(200):
            slot = admission.admit()
            if chance.random() < 0.2:
                await asyncio.sleep(0)
            slot.release()

    await asyncio.gather(*(worker() for _ in range(32)))

    async with asyncio.timeout(5):
        state = signal.state
        while state.demand:
            state = await signal.changed(state.version)
    assert meter.effective == 0
    meter.close()
