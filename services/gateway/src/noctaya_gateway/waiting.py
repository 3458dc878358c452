"""The line in which cold requests wait, in the order in which they came (behaviour G1, G5, G7).

One line, three timers, whatever the number of held requests: the next heartbeat, the next deadline, the
next paced release. There is no task per request. A held request is anything that implements `Waiter`;
`hold` gives a `Ticket`, which leaves the line in constant time. Deadlines need no second queue:
everyone waits the same time, so the line's own order is the order of deadlines. A request that was
released but could not connect goes back to where it stood, with the deadline it had, and nobody
overtakes it.

Heartbeats that fall due within a tenth of a second are sent together, which keeps thousands of held
requests cheap.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from noctaya_gateway.balancer import Address, Balancer
from noctaya_gateway.errors import GatewayError
from noctaya_gateway.pacing import Pacer
from noctaya_gateway.timers import Timer, Timers

HEARTBEAT_BATCH = 0.1
"""Seconds within which due heartbeats are sent together; at most a tenth of the interval."""


class Waiter(Protocol):
    """What the line holds; exactly one of `released` and `failed` is called, unless the ticket is
    cancelled first.
    """

    waited: float
    """Seconds spent in the line so far, written before `released` and `failed`."""

    def released(self, address: Address) -> None:
        """A backend is ready at `address` and it is this request's turn."""

    def heartbeat(self) -> None:
        """A heartbeat is due."""

    def failed(self, error: GatewayError) -> None:
        """The wait ended without a backend."""


class Ticket:
    """A place in the line."""

    __slots__ = ("_line", "arrived", "deadline", "number", "nxt", "prev", "waiter")

    def __init__(
        self, line: WaitingLine, waiter: Waiter, *, number: int, arrived: float, deadline: float
    ) -> None:
        self._line: WaitingLine | None = line
        self.waiter = waiter
        self.number = number
        """Position of arrival; grows with every newcomer."""
        self.arrived = arrived
        """Loop time at which the wait began."""
        self.deadline = deadline
        self.prev: Ticket | None = None
        self.nxt: Ticket | None = None

    @property
    def held(self) -> bool:
        """True until the ticket is released, failed or cancelled."""
        return self._line is not None

    def cancel(self) -> None:
        """Leave the line, in constant time; nothing is called afterwards. Idempotent."""
        line = self._line
        if line is not None:
            line.remove(self)

    def detach(self) -> None:
        """Used by the line when the ticket has left it."""
        self._line = self.prev = self.nxt = None


class WaitingLine:
    """FIFO of held requests; `timeout` and `heartbeat_interval` in seconds."""

    def __init__(
        self,
        *,
        timers: Timers,
        balancer: Balancer,
        pacer: Pacer,
        timeout: float,
        heartbeat_interval: float,
        timeout_error: Callable[[float], GatewayError],
    ) -> None:
        self._timers = timers
        self._balancer = balancer
        self._pacer = pacer
        self._timeout = timeout
        self._interval = heartbeat_interval
        self._batch = min(HEARTBEAT_BATCH, heartbeat_interval / 10)
        self._timeout_error = timeout_error
        self._head: Ticket | None = None
        self._tail: Ticket | None = None
        self._length = 0
        self._arrivals = 0
        self._beats: OrderedDict[Ticket, float] = OrderedDict()
        self._beat_timer: Timer | None = None
        self._deadline_timer: Timer | None = None
        self._release_timer: Timer | None = None
        self._pumping = False

    def __len__(self) -> int:
        return self._length

    def hold(self, waiter: Waiter, *, heartbeats: bool, again: Ticket | None = None) -> Ticket:
        """Put `waiter` at the end of the line, or back where `again` (its released ticket) stood.

        Nothing is called back before this returns.
        """
        now = self._timers.time()
        if again is None:
            self._arrivals += 1
            number, arrived, deadline = self._arrivals, now, now + self._timeout
        else:
            number, arrived, deadline = again.number, again.arrived, again.deadline
        ticket = Ticket(self, waiter, number=number, arrived=arrived, deadline=deadline)
        self._insert(ticket)
        if heartbeats:
            self._beats[ticket] = now + self._interval
            if self._beat_timer is None:
                self._beat_timer = self._timers.call_at(now + self._interval + self._batch, self._beat)
        if self._deadline_timer is None or self._head is ticket:
            self._schedule_deadline()
        if self._balancer.ready:
            self._schedule_release(now)
        return ticket

    def remove(self, ticket: Ticket) -> None:
        """Take `ticket` out without a call; what `Ticket.cancel` does."""
        before, after = ticket.prev, ticket.nxt
        if before is None:
            self._head = after
        else:
            before.nxt = after
        if after is None:
            self._tail = before
        else:
            after.prev = before
        self._length -= 1
        self._beats.pop(ticket, None)
        ticket.detach()

    def pump(self) -> None:
        """Release from the head as far as ready addresses and pacing allow; called when an address became
        ready.
        """
        if self._pumping:
            return
        self._pumping = True
        try:
            self._release()
        finally:
            self._pumping = False

    def fail_all(self, make_error: Callable[[], GatewayError], *, deadline_after: float = 0.0) -> None:
        """End the wait of everyone held now whose deadline lies after `deadline_after` with an error of
        its own.
        """
        ticket = self._head
        doomed: list[Ticket] = []
        while ticket is not None:
            if ticket.deadline > deadline_after:
                doomed.append(ticket)
            ticket = ticket.nxt
        for each in doomed:
            if each.held:
                self._fail(each, make_error())

    def close(self) -> None:
        """Stop the timers; the line is not used afterwards."""
        for timer in (self._beat_timer, self._deadline_timer, self._release_timer):
            if timer is not None:
                timer.cancel()
        self._beat_timer = self._deadline_timer = self._release_timer = None

    def _insert(self, ticket: Ticket) -> None:
        before = self._tail
        after: Ticket | None = None
        if before is not None and before.number > ticket.number:
            before, after = None, self._head
            while after is not None and after.number < ticket.number:
                before, after = after, after.nxt
        ticket.prev, ticket.nxt = before, after
        if before is None:
            self._head = ticket
        else:
            before.nxt = ticket
        if after is None:
            self._tail = ticket
        else:
            after.prev = ticket
        self._length += 1

    def _release(self) -> None:
        now = self._timers.time()
        while (ticket := self._head) is not None:
            address, wait = self._next_address(now)
            if address is None:
                if wait is not None:
                    self._schedule_release(now + wait)
                return
            self._pacer.take(address, now)
            self.remove(ticket)
            ticket.waiter.waited = now - ticket.arrived
            ticket.waiter.released(address)

    def _next_address(self, now: float) -> tuple[Address | None, float | None]:
        busy: set[Address] = set()
        shortest: float | None = None
        while (address := self._balancer.pick(busy, trusted=True)) is not None:
            wait = self._pacer.wait(address, now)
            if wait <= 0:
                return address, None
            shortest = wait if shortest is None else min(shortest, wait)
            busy.add(address)
        return None, shortest

    def _schedule_release(self, when: float) -> None:
        if self._release_timer is not None:
            return
        self._release_timer = self._timers.call_at(when, self._release_due)

    def _release_due(self) -> None:
        self._release_timer = None
        self.pump()

    def _beat(self) -> None:
        self._beat_timer = None
        now = self._timers.time()
        beats = self._beats
        due = []
        for ticket, at in beats.items():
            if at > now:
                break
            due.append((ticket, at))
        for ticket, at in due:
            if ticket in beats:
                # From the time it was due, not from now: a batch must not stretch the interval.
                beats[ticket] = max(at + self._interval, now)
                beats.move_to_end(ticket)
                ticket.waiter.heartbeat()
        if beats and self._beat_timer is None:
            first = next(iter(beats.values()))
            self._beat_timer = self._timers.call_at(first + self._batch, self._beat)

    def _schedule_deadline(self) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
            self._deadline_timer = None
        if self._head is not None:
            self._deadline_timer = self._timers.call_at(self._head.deadline, self._expire)

    def _expire(self) -> None:
        self._deadline_timer = None
        now = self._timers.time()
        while (ticket := self._head) is not None and ticket.deadline <= now:
            self._fail(ticket, self._timeout_error(now - ticket.arrived))
        if self._deadline_timer is None:
            self._schedule_deadline()

    def _fail(self, ticket: Ticket, error: GatewayError) -> None:
        self.remove(ticket)
        ticket.waiter.waited = self._timers.time() - ticket.arrived
        ticket.waiter.failed(error)
