"""The aggregate's memory: the newest report of each gateway process, until it expires.

Pure bookkeeping: no I/O, no event loop, the clock is injected. Members are kept in the order of their expiry,
which is the order of their last accepted report because all live equally long; so expiry looks only at what
is due, and the sum is kept up to date instead of being added up for every reader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from noctaya_api.demand.report import INT64_MAX, DemandReport

MEMBER_TTL: Final = 10.0
"""Seconds a report counts (contracts 4.5); five missed heartbeats."""


class Outcome(StrEnum):
    """What became of a report; also the `result` label of the reports counter."""

    ACCEPTED = "accepted"
    STALE = "stale"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of one report."""

    outcome: Outcome
    clamped: bool = False
    """Whether the reported demand was above the bound and counts as the bound (behaviour S1)."""


@dataclass(slots=True)
class _Member:
    sequence: int
    demand: int
    expiry: float


class DemandLedger:
    """Newest report per member.

    Args:
        max_members: members known at once, above 0; a further one is refused.
        max_demand: the most one member can contribute, above 0; more is clamped.
        clock: monotonic seconds.
        ttl: seconds a report counts; at exactly its end it has expired.
        expected_members: after this many different members have reported, the total is complete without
            waiting for one `ttl` to pass since the start; None when the number isn't known.

    Raises:
        ValueError: a bound that is not above 0.
    """

    def __init__(
        self,
        *,
        max_members: int,
        max_demand: int,
        clock: Callable[[], float],
        ttl: float = MEMBER_TTL,
        expected_members: int | None = None,
    ) -> None:
        if max_members < 1 or max_demand < 1 or ttl <= 0:
            raise ValueError("max_members, max_demand and ttl must be above 0")
        if expected_members is not None and expected_members < 1:
            raise ValueError("expected_members must be above 0")
        self._max_members = max_members
        self._max_demand = max_demand
        self._clock = clock
        self._ttl = ttl
        self._expected = expected_members
        self._members: dict[str, _Member] = {}
        self._sum = 0
        self._expired = 0
        self._known_at = clock() + ttl
        self._known = False

    def record(self, report: DemandReport) -> Recorded:
        """Take up a report, unless it is stale or from one member too many.

        A sequence not above the stored one is stale and changes nothing, not even the member's expiry.
        """
        now = self._clock()
        self._expire(now)
        member = self._members.get(report.member_id)
        if member is None:
            if len(self._members) >= self._max_members:
                return Recorded(Outcome.CAPACITY)
        elif report.sequence <= member.sequence:
            return Recorded(Outcome.STALE)
        else:
            self._sum -= member.demand
            del self._members[report.member_id]
        demand = min(report.demand, self._max_demand)
        self._members[report.member_id] = _Member(report.sequence, demand, now + self._ttl)
        self._sum += demand
        if self._expected is not None and len(self._members) >= self._expected:
            self._known = True
        return Recorded(Outcome.ACCEPTED, clamped=report.demand > self._max_demand)

    def total(self) -> int:
        """Sum over the live members, saturating at the largest int64."""
        self._expire(self._clock())
        return min(self._sum, INT64_MAX)

    @property
    def known(self) -> bool:
        """Whether the total can be relied on: false after a start until every live member must have reported.

        That is after one member TTL, or at once when every expected member was heard. Never false again.
        """
        if not self._known:
            self._known = self._clock() >= self._known_at
        return self._known

    @property
    def known_at(self) -> float:
        """The moment, on the ledger's clock, at which the total is known at the latest."""
        return self._known_at

    @property
    def members(self) -> int:
        """Live members, withdrawn ones included until they expire."""
        self._expire(self._clock())
        return len(self._members)

    @property
    def expired(self) -> int:
        """Members that have expired since the start."""
        self._expire(self._clock())
        return self._expired

    def _expire(self, now: float) -> None:
        while self._members:
            member_id, oldest = next(iter(self._members.items()))
            if oldest.expiry > now:
                return
            del self._members[member_id]
            self._sum -= oldest.demand
            self._expired += 1
