"""Admission, activation and demand against a model that keeps times as plain numbers."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from noctaya_api.demand.signal import DemandSignal
from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission, Slot
from noctaya_gateway.demand import SETTLE, DemandMeter
from noctaya_gateway.errors import ActivationFailed

from .clock import ManualTimers

TIMEOUT = 60
GRACE = 15


class DemandMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.timers = ManualTimers(0.0)
        self.ready = False
        self.admission = Admission(4)
        self.activation = Activation(
            timers=self.timers, timeout=TIMEOUT, grace=GRACE, is_ready=lambda: self.ready, jitter=lambda: 0.0
        )
        self.signal = DemandSignal()
        self.meter = DemandMeter(
            admission=self.admission, activation=self.activation, signal=self.signal, timers=self.timers
        )
        self.admission.notify(self.meter.update)
        self.activation.subscribe(change=self.meter.update)
        self.slots: list[Slot] = []
        # The model.
        self.now = 0
        self.started: int | None = None
        self.deadline = 0
        self.grace_until = 0
        self.failures = 0
        self.backoff_until = 0
        self.rises = 0
        self.was_active = False

    def _model_active(self) -> bool:
        return bool(self.slots) or self.started is not None or self.now < self.grace_until

    def _note(self) -> None:
        active = self._model_active()
        self.rises += active and not self.was_active
        self.was_active = active

    @precondition(lambda self: len(self.slots) < 4)
    @rule()
    def admit(self) -> None:
        self.slots.append(self.admission.admit())
        self._note()

    @precondition(lambda self: self.slots)
    @rule(index=st.integers(0, 3))
    def release(self, index: int) -> None:
        self.slots.pop(index % len(self.slots)).release()
        self._note()

    @rule()
    def cold_request(self) -> None:
        if self.ready:
            self.activation.begin()
        elif self.started is None and self.now < self.backoff_until:
            with pytest.raises(ActivationFailed):
                self.activation.begin()
        else:
            self.activation.begin()
            if self.started is None:
                self.started = self.now
            self.deadline = min(self.now + TIMEOUT, self.started + 2 * TIMEOUT)
        self._note()

    @precondition(lambda self: not self.ready)
    @rule()
    def backend_comes_up(self) -> None:
        self.ready = True
        self.activation.became_ready()
        if self.started is not None:
            self.grace_until = self.now + GRACE
        self.started = None
        self.failures = 0
        self.backoff_until = 0
        self._note()

    @precondition(lambda self: self.ready)
    @rule()
    def backend_goes(self) -> None:
        self.ready = False

    @rule(why=st.text(max_size=5))
    def doom(self, why: str) -> None:
        self.activation.doom(why)
        if self.started is not None:
            self._fail()

    @rule(seconds=st.integers(1, 90))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.timers.advance(1)
            self.now += 1
            if self.started is not None and self.now >= self.deadline:
                self._fail()
            self._note()

    def _fail(self) -> None:
        self.started = None
        self.failures += 1
        self.backoff_until = self.now + min(15 * 2 ** (self.failures - 1), 300)
        self._note()

    @invariant()
    def effective_demand_is_that_of_the_model(self) -> None:
        assert self.meter.effective == (len(self.slots) or int(self._model_active()))
        assert self.meter.pending == len(self.slots)
        assert self.activation.pending == (self.started is not None)
        assert self.activation.failures == self.failures

    @invariant()
    def a_rise_is_published_at_once(self) -> None:
        if self.meter.effective > 0:
            assert self.signal.state.active

    @invariant()
    def rises_are_counted(self) -> None:
        assert self.meter.activations == self.rises

    @invariant()
    def retry_after_is_in_range(self) -> None:
        assert 1 <= self.activation.retry_after() <= 60

    @invariant()
    def timers_do_not_pile_up(self) -> None:
        assert self.timers.armed <= 2

    def teardown(self) -> None:
        for slot in self.slots:
            slot.release()
        self.timers.advance(3 * TIMEOUT + GRACE + SETTLE)
        assert self.meter.effective == 0
        assert self.signal.state.demand == 0
        assert self.timers.armed == 0


TestDemandMachine = DemandMachine.TestCase
TestDemandMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
