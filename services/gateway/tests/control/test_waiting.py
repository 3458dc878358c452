from __future__ import annotations

import time

from noctaya_gateway.errors import ActivationTimeout, Draining, GatewayError
from noctaya_gateway.waiting import HEARTBEAT_BATCH

from .waiters import A, B, Held, LineRig


def test_the_line_is_released_in_the_order_of_arrival() -> None:
    rig = LineRig()
    order: list[Held] = []
    waiters = [Held(number) for number in range(20)]
    for waiter in waiters:
        waiter.log = order
        rig.line.hold(waiter, heartbeats=False)
    rig.up()
    assert order == waiters
    assert {waiter.address for waiter in waiters} == {A}
    assert len(rig.line) == 0


def test_the_time_waited_is_known_at_release() -> None:
    rig = LineRig()
    waiter = Held()
    rig.line.hold(waiter, heartbeats=False)
    rig.timers.advance(12.5)
    rig.up()
    assert waiter.waited == 12.5


def test_hold_calls_nothing_back_even_when_a_backend_is_ready() -> None:
    rig = LineRig()
    rig.up()
    waiter = Held()
    rig.line.hold(waiter, heartbeats=True)
    assert waiter.calls == []
    rig.timers.settle()
    assert waiter.calls == ["released"]


def test_g5_a_cancelled_ticket_hears_nothing_more_and_is_not_a_timeout() -> None:
    rig = LineRig()
    first, second, third = Held(), Held(), Held()
    rig.line.hold(first, heartbeats=True)
    ticket = rig.line.hold(second, heartbeats=True)
    rig.line.hold(third, heartbeats=True)

    ticket.cancel()
    ticket.cancel()

    assert len(rig.line) == 2
    assert not ticket.held
    rig.timers.advance(15)
    rig.up()
    assert (second.calls, second.beats) == ([], 0)
    assert first.calls == third.calls == ["released"]


def test_g4_of_contracts_a_wait_ends_at_its_own_deadline() -> None:
    rig = LineRig(timeout=100)
    early, late = Held(), Held()
    rig.line.hold(early, heartbeats=False)
    rig.timers.advance(40)
    rig.line.hold(late, heartbeats=False)

    rig.timers.advance(60)
    assert isinstance(early.error, ActivationTimeout)
    assert early.waited == 100
    assert late.calls == []
    rig.timers.advance(40)
    assert isinstance(late.error, ActivationTimeout)
    assert rig.timers.armed == 0


def test_g1_the_first_heartbeat_is_due_after_one_interval_and_then_every_interval() -> None:
    rig = LineRig(interval=10)
    waiter = Held()
    rig.line.hold(waiter, heartbeats=True)
    rig.timers.advance(9.99)
    assert waiter.beats == 0
    rig.timers.advance(0.01 + HEARTBEAT_BATCH)
    assert waiter.beats == 1
    rig.timers.advance(50)
    assert waiter.beats == 6


def test_g1_no_heartbeat_after_release() -> None:
    rig = LineRig(interval=1)
    waiter = Held()
    rig.line.hold(waiter, heartbeats=True)
    rig.timers.advance(2.5)
    rig.up()
    beats = waiter.beats
    rig.timers.advance(10)
    assert waiter.beats == beats == 2


def test_heartbeats_can_be_off_for_one_request() -> None:
    rig = LineRig(interval=1)
    silent, beating = Held(), Held()
    rig.line.hold(silent, heartbeats=False)
    rig.line.hold(beating, heartbeats=True)
    rig.timers.advance(5.5)
    assert silent.beats == 0
    assert beating.beats == 5


def test_p4_five_thousand_held_need_three_timers_and_few_wake_ups() -> None:
    rig = LineRig(interval=10, timeout=1000)
    waiters = [Held() for _ in range(5000)]
    for waiter in waiters:
        rig.line.hold(waiter, heartbeats=True)
        rig.timers.advance(0.002)
    assert rig.timers.armed <= 3

    before, began = rig.timers.fired, time.process_time()
    rig.timers.advance(20)
    spent = time.process_time() - began

    assert rig.timers.fired - before <= 20 / HEARTBEAT_BATCH + 10
    assert sum(waiter.beats for waiter in waiters) >= 1.99 * 5000
    assert spent < 0.03 * 20, "3 % of a core over 20 s, without the writing"


def test_g7_a_queue_is_let_onto_one_backend_no_faster_than_the_rate() -> None:
    rig = LineRig(rate=100)
    waiters = [Held() for _ in range(200)]
    for waiter in waiters:
        rig.line.hold(waiter, heartbeats=False)
    rig.up()

    def released() -> int:
        return sum(bool(waiter.calls) for waiter in waiters)

    assert released() == 10, "the burst"
    rig.timers.advance(0.5)
    assert 59 <= released() <= 61
    rig.timers.advance(1.5)
    assert released() == 200


def test_g7_a_second_backend_doubles_the_rate() -> None:
    rig = LineRig(rate=100, addresses=(A, B))
    waiters = [Held() for _ in range(400)]
    for waiter in waiters:
        rig.line.hold(waiter, heartbeats=False)
    rig.up(A)
    rig.up(B)
    rig.timers.advance(1.0)
    counts = {address: sum(waiter.address == address for waiter in waiters) for address in (A, B)}
    assert all(109 <= count <= 111 for count in counts.values()), counts


def test_a_newcomer_does_not_overtake_a_paced_line() -> None:
    rig = LineRig(rate=10)
    order: list[Held] = []
    waiters = [Held(number) for number in range(5)]
    for waiter in waiters:
        waiter.log = order
        rig.line.hold(waiter, heartbeats=False)
    rig.up()
    late = Held("late")
    late.log = order
    rig.line.hold(late, heartbeats=False)
    rig.timers.advance(2)
    assert order == [*waiters, late]


def test_a_request_that_could_not_connect_goes_back_to_its_place_with_its_deadline() -> None:
    rig = LineRig(timeout=100)
    order: list[Held] = []
    waiters = [Held(number) for number in range(3)]
    tickets = [rig.line.hold(waiter, heartbeats=False) for waiter in waiters]
    rig.timers.advance(30)
    rig.up()
    rig.balancer.report_unreachable(A)
    last = Held("last")
    rig.line.hold(last, heartbeats=False)
    for waiter, ticket in reversed(list(zip(waiters, tickets, strict=True))):
        rig.line.hold(waiter, heartbeats=False, again=ticket)
    rig.timers.advance(1)
    assert len(rig.line) == 4, "nothing is released to an address that is not trusted"
    for waiter in (*waiters, last):
        waiter.log = order
    rig.up()
    assert order == [*waiters, last]

    again = [rig.line.hold(waiters[0], heartbeats=False, again=tickets[0])]
    rig.down()
    rig.timers.advance(68)
    assert again[0].held
    rig.timers.advance(1)
    assert isinstance(waiters[0].error, ActivationTimeout)


def test_everyone_held_can_be_told_at_once_each_with_an_error_of_its_own() -> None:
    rig = LineRig()
    waiters = [Held() for _ in range(3)]
    for waiter in waiters:
        rig.line.hold(waiter, heartbeats=True)
    rig.line.fail_all(Draining)
    errors = [waiter.error for waiter in waiters]
    assert all(isinstance(error, Draining) for error in errors)
    assert len(set(map(id, errors))) == 3
    assert len(rig.line) == 0


def test_those_about_to_time_out_can_be_left_alone() -> None:
    rig = LineRig(timeout=100)
    old, young = Held(), Held()
    rig.line.hold(old, heartbeats=False)
    rig.timers.advance(50)
    rig.line.hold(young, heartbeats=False)
    rig.line.fail_all(Draining, deadline_after=rig.timers.time() + 60)
    assert old.calls == []
    assert young.calls == ["failed"]


def test_one_that_leaves_because_another_was_told_is_not_told_itself() -> None:
    rig = LineRig()
    second = Held()

    class Leader(Held):
        def failed(self, error: GatewayError) -> None:
            super().failed(error)
            ticket.cancel()

    rig.line.hold(Leader(), heartbeats=False)
    ticket = rig.line.hold(second, heartbeats=False)
    rig.line.fail_all(Draining)
    assert second.calls == []


def test_closing_stops_every_timer() -> None:
    rig = LineRig(rate=1)
    for _ in range(3):
        rig.line.hold(Held(), heartbeats=True)
    rig.up()
    rig.line.close()
    assert rig.timers.armed == 0
