import pytest
from noctaya_api.demand.ledger import MEMBER_TTL, DemandLedger, Outcome, Recorded
from noctaya_api.demand.report import INT64_MAX, DemandReport


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ledger(clock: Clock, **bounds: int) -> DemandLedger:
    return DemandLedger(clock=clock, **{"max_members": 4, "max_demand": 100, **bounds})


def report(member: str, sequence: int, demand: int) -> DemandReport:
    return DemandReport(member_id=member, sequence=sequence, demand=demand)


def test_a1_the_total_is_the_sum_of_the_newest_reports(clock: Clock) -> None:
    books = ledger(clock)
    for each in (report("a", 1, 5), report("b", 1, 7), report("a", 2, 1)):
        assert books.record(each) == Recorded(Outcome.ACCEPTED)
    assert books.total() == 8
    assert books.members == 2


@pytest.mark.parametrize("sequence", [1, 4, 5])
def test_a1_a_stale_sequence_changes_nothing_and_does_not_extend_the_life(
    clock: Clock, sequence: int
) -> None:
    books = ledger(clock)
    books.record(report("a", 5, 5))
    clock.now += MEMBER_TTL - 1
    assert books.record(report("a", sequence, 9)) == Recorded(Outcome.STALE)
    assert books.total() == 5
    clock.now += 1
    assert books.total() == 0


def test_a1_a_report_expires_at_exactly_its_ttl(clock: Clock) -> None:
    books = ledger(clock)
    books.record(report("a", 1, 5))
    clock.now += MEMBER_TTL - 0.001
    assert books.total() == 5
    clock.now = 1000.0 + MEMBER_TTL
    assert books.total() == 0
    assert books.members == 0
    assert books.expired == 1


def test_a2_a_replaced_gateway_counts_beside_its_successor_until_it_expires(clock: Clock) -> None:
    books = ledger(clock)
    books.record(report("old/1", 9, 4))
    clock.now += 5
    books.record(report("new/1", 1, 4))
    assert books.total() == 8
    clock.now += 5
    assert books.total() == 4


def test_a_member_that_expired_may_start_over_with_a_low_sequence(clock: Clock) -> None:
    books = ledger(clock)
    books.record(report("a", 50, 4))
    clock.now += MEMBER_TTL
    assert books.record(report("a", 1, 2)) == Recorded(Outcome.ACCEPTED)
    assert books.total() == 2


def test_a5_a_member_too_many_is_refused_and_a_known_one_is_not(clock: Clock) -> None:
    books = ledger(clock, max_members=2)
    books.record(report("a", 1, 1))
    books.record(report("b", 1, 1))
    assert books.record(report("c", 1, 9)) == Recorded(Outcome.CAPACITY)
    assert books.record(report("a", 2, 3)) == Recorded(Outcome.ACCEPTED)
    assert books.total() == 4


def test_a7_a_withdrawn_member_adds_nothing_but_keeps_its_place_until_its_ttl(clock: Clock) -> None:
    books = ledger(clock, max_members=1)
    books.record(report("a", 1, 5))
    books.record(report("a", 2, 0))
    assert books.total() == 0
    assert books.members == 1
    assert books.record(report("b", 1, 1)).outcome is Outcome.CAPACITY
    clock.now += MEMBER_TTL
    assert books.record(report("b", 1, 1)).outcome is Outcome.ACCEPTED


def test_s1_demand_above_the_bound_is_clamped_and_said_so(clock: Clock) -> None:
    books = ledger(clock, max_demand=100)
    assert books.record(report("a", 1, 100)) == Recorded(Outcome.ACCEPTED)
    assert books.record(report("b", 1, 101)) == Recorded(Outcome.ACCEPTED, clamped=True)
    assert books.record(report("c", 1, INT64_MAX)) == Recorded(Outcome.ACCEPTED, clamped=True)
    assert books.total() == 300


def test_the_sum_saturates_and_recovers(clock: Clock) -> None:
    books = ledger(clock, max_demand=INT64_MAX)
    books.record(report("a", 1, INT64_MAX))
    books.record(report("b", 1, INT64_MAX))
    assert books.total() == INT64_MAX
    books.record(report("a", 2, 0))
    books.record(report("b", 2, 3))
    assert books.total() == 3


def test_s1_the_total_is_unknown_for_one_ttl_after_the_start(clock: Clock) -> None:
    books = ledger(clock)
    books.record(report("a", 1, 5))
    assert not books.known
    clock.now += MEMBER_TTL - 0.001
    assert not books.known
    clock.now = books.known_at
    assert books.known
    assert books.known_at == 1000.0 + MEMBER_TTL


def test_s1_the_total_is_known_once_every_expected_member_reported(clock: Clock) -> None:
    books = ledger(clock, expected_members=2)
    books.record(report("a", 1, 0))
    books.record(report("a", 2, 0))
    assert not books.known
    books.record(report("b", 1, 0))
    assert books.known
    clock.now += MEMBER_TTL
    assert books.members == 0
    assert books.known


@pytest.mark.parametrize("bad", [{"max_members": 0}, {"max_demand": 0}, {"expected_members": 0}])
def test_bounds_must_be_above_zero(clock: Clock, bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ledger(clock, **bad)
