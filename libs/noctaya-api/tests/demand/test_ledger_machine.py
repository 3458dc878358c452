"""The ledger against a model that keeps every report ever sent and adds up from scratch."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from noctaya_api.demand.ledger import DemandLedger, Outcome
from noctaya_api.demand.report import INT64_MAX, DemandReport

TTL = 10
MEMBERS = st.sampled_from(["a", "b", "c", "d", "e"])
SEQUENCES = st.integers(1, 8)
DEMANDS = st.one_of(st.integers(0, 12), st.sampled_from([INT64_MAX - 1, INT64_MAX]))


@dataclass
class Kept:
    sequence: int
    demand: int
    at: int


class LedgerMachine(RuleBasedStateMachine):
    """Whole seconds only, so that expiry at exactly the TTL happens often."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.kept: dict[str, Kept] = {}
        self.expired = 0
        self.complete = False

    @initialize(
        max_members=st.integers(1, 5),
        max_demand=st.one_of(st.integers(1, 10), st.just(INT64_MAX)),
        expected=st.one_of(st.none(), st.integers(1, 4)),
    )
    def start(self, max_members: int, max_demand: int, expected: int | None) -> None:
        self.max_members, self.max_demand, self.expected = max_members, max_demand, expected
        self.ledger = DemandLedger(
            max_members=max_members,
            max_demand=max_demand,
            clock=lambda: float(self.now),
            ttl=float(TTL),
            expected_members=expected,
        )

    def live(self) -> dict[str, Kept]:
        return {name: kept for name, kept in self.kept.items() if self.now - kept.at < TTL}

    @rule(member=MEMBERS, sequence=SEQUENCES, demand=DEMANDS)
    def report(self, member: str, sequence: int, demand: int) -> None:
        live = self.live()
        recorded = self.ledger.record(DemandReport(member_id=member, sequence=sequence, demand=demand))
        if member in live and sequence <= live[member].sequence:
            assert recorded.outcome is Outcome.STALE
            return
        if member not in live and len(live) >= self.max_members:
            assert recorded.outcome is Outcome.CAPACITY
            return
        assert recorded.outcome is Outcome.ACCEPTED
        assert recorded.clamped == (demand > self.max_demand)
        self.kept[member] = Kept(sequence, min(demand, self.max_demand), self.now)
        self.complete |= self.expected is not None and len(self.live()) >= self.expected

    @rule(seconds=st.sampled_from([1, 2, 3, 9, 10, 11]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        gone = [name for name, kept in self.kept.items() if self.now - kept.at >= TTL]
        for name in gone:
            del self.kept[name]
        self.expired += len(gone)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(sorted(self.live())))
        self.report(member, self.kept[member].sequence + 1, 0)
        assert self.kept[member].demand == 0

    @invariant()
    def agrees(self) -> None:
        live = self.live()
        assert self.ledger.total() == min(INT64_MAX, sum(kept.demand for kept in live.values()))
        assert self.ledger.members == len(live)
        assert self.ledger.expired == self.expired
        assert self.ledger.known == (self.complete or self.now >= TTL)


LedgerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLedger = LedgerMachine.TestCase
