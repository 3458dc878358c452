"""The waiting line against a model: a plain list of who waits since when."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from noctaya_gateway.waiting import HEARTBEAT_BATCH, Ticket

from .waiters import A, Held, LineRig

TIMEOUT = 30
INTERVAL = 5


class LineMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = LineRig(timeout=TIMEOUT, interval=INTERVAL, rate=0)
        self.expected: list[tuple[float, Held, Ticket]] = []
        self.gone: list[tuple[Held, Ticket]] = []
        self.cancelled: set[Held] = set()
        self.released: list[Held] = []
        self.number = 0

    @property
    def now(self) -> float:
        return self.rig.timers.time()

    def _released(self) -> None:
        """Everyone in the model's line was let go, in its order."""
        assert self.released == [waiter for _, waiter, _ in self.expected]
        self.released.clear()
        self.gone += [(waiter, ticket) for _, waiter, ticket in self.expected]
        self.expected.clear()

    @rule(beating=st.booleans())
    def hold(self, beating: bool) -> None:
        self.number += 1
        waiter = Held(self.number)
        waiter.log = self.released
        ticket = self.rig.line.hold(waiter, heartbeats=beating)
        assert waiter.calls == []
        self.expected.append((self.now, waiter, ticket))
        self.rig.timers.settle()
        if self.rig.balancer.pick(trusted=True):
            self._released()

    @precondition(lambda self: self.expected)
    @rule(index=st.integers(0, 20))
    def client_leaves(self, index: int) -> None:
        _, waiter, ticket = self.expected.pop(index % len(self.expected))
        ticket.cancel()
        self.cancelled.add(waiter)

    @rule()
    def backend_is_ready(self) -> None:
        self.rig.up()
        self._released()

    @rule()
    def backend_is_gone(self) -> None:
        self.rig.down()

    @precondition(lambda self: self.gone)
    @rule(index=st.integers(0, 20))
    def connect_fails(self, index: int) -> None:
        waiter, ticket = self.gone.pop(index % len(self.gone))
        self.rig.balancer.report_unreachable(A)
        again = self.rig.line.hold(waiter, heartbeats=False, again=ticket)
        waiter.calls.clear()
        assert (again.arrived, again.deadline) == (ticket.arrived, ticket.deadline)
        self.expected.append((again.arrived, waiter, again))
        self.expected.sort(key=lambda entry: (entry[0], entry[1].name))
        self._expire()

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds: int) -> None:
        self.rig.timers.advance(seconds)
        self._expire()

    def _expire(self) -> None:
        self.rig.timers.settle()
        due = [entry for entry in self.expected if self.now >= entry[0] + TIMEOUT]
        self.expected = [entry for entry in self.expected if entry not in due]
        for _, waiter, _ in due:
            assert waiter.calls == ["failed"]

    @invariant()
    def the_line_is_as_long_as_the_model(self) -> None:
        assert len(self.rig.line) == len(self.expected)
        assert bool(self.rig.line) == bool(self.expected)

    @invariant()
    def those_in_line_were_told_nothing_and_hold_their_ticket(self) -> None:
        for arrived, waiter, ticket in self.expected:
            assert waiter.calls == []
            assert ticket.held
            assert waiter.beats <= (self.now - arrived) / INTERVAL

    @invariant()
    def those_who_left_were_told_nothing(self) -> None:
        assert all(waiter.calls == [] for waiter in self.cancelled)

    @invariant()
    def at_most_three_timers(self) -> None:
        assert self.rig.timers.armed <= 3

    def teardown(self) -> None:
        self.rig.down()
        self.rig.timers.advance(TIMEOUT + INTERVAL + HEARTBEAT_BATCH)
        assert len(self.rig.line) == 0
        assert self.rig.timers.armed == 0


TestLineMachine = LineMachine.TestCase
TestLineMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
