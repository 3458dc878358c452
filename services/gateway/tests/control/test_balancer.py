from __future__ import annotations

from collections import Counter

import pytest
from noctaya_gateway.balancer import Address, Balancer

A = Address("10.0.0.1", 8000)
B = Address("10.0.0.2", 8000)
C = Address("10.0.0.3", 8000)
SERVICE = Address("model-backend", 80)


def balancer(*ready: Address, known: tuple[Address, ...] = (), backup: tuple[Address, ...] = ()) -> Balancer:
    made = Balancer()
    made.set_addresses((*ready, *known), backup=backup)
    for address in ready:
        made.mark(address, ready=True)
    return made


def test_nothing_is_picked_while_nothing_is_ready() -> None:
    cold = balancer(known=(A,))
    assert not cold.ready
    assert cold.pick() is None


def test_g7_the_address_with_the_fewest_requests_in_flight_is_picked() -> None:
    two = balancer(A, B)
    two.opened(A)
    assert two.pick() == B
    two.opened(B)
    two.opened(B)
    assert two.pick() == A
    two.closed(B)
    two.closed(B)
    assert two.pick() == B


def test_g7_equal_load_goes_round() -> None:
    three = balancer(A, B, C)
    picks = Counter(three.pick() for _ in range(30))
    assert picks == {A: 10, B: 10, C: 10}


def test_unready_and_excluded_addresses_are_not_picked() -> None:
    some = balancer(A, B, known=(C,))
    assert {some.pick(), some.pick()} == {A, B}
    assert some.pick({A}) == B
    assert some.pick({A, B}) is None
    assert balancer(A).pick({A}) is None


def test_an_address_that_could_not_be_reached_is_avoided_until_it_is_probed() -> None:
    two = balancer(A, B)
    two.opened(B)
    two.report_unreachable(A)
    assert two.pick() == B
    assert two.pick({B}) == A, "it still counts as ready"
    assert two.pick({B}, trusted=True) is None
    assert two.ready

    two.mark(A, ready=True)
    assert two.pick() == A


def test_the_only_address_is_picked_although_suspect_but_not_when_it_must_be_trusted() -> None:
    one = balancer(A)
    one.report_unreachable(A)
    assert one.pick() == A
    assert one.pick(trusted=True) is None


def test_nobody_at_the_service_while_no_pod_is_known_makes_it_cold_at_once() -> None:
    gone = balancer(backup=(SERVICE,))
    gone.mark(SERVICE, ready=True)
    told: list[str] = []
    gone.subscribe(cold=lambda: told.append("cold"), suspect=lambda address: told.append(str(address)))
    gone.report_unreachable(SERVICE)
    assert not gone.ready
    assert told == ["cold", str(SERVICE)], "and it is probed at once"
    gone.report_unreachable(SERVICE)
    assert len(told) == 2


def test_nobody_at_the_service_while_pods_are_known_is_a_doubt_only() -> None:
    starting = balancer(known=(A,), backup=(SERVICE,))
    starting.mark(SERVICE, ready=True)
    starting.report_unreachable(SERVICE)
    assert starting.ready
    assert starting.pick(trusted=True) is None


def test_a_failed_connect_is_announced_once_and_only_for_a_ready_address() -> None:
    some = balancer(A, known=(B,))
    suspects: list[Address] = []
    some.subscribe(suspect=suspects.append)
    for address in (A, A, B, C):
        some.report_unreachable(address)
    assert suspects == [A]


def test_g7_an_address_that_left_is_announced_and_not_used_any_more() -> None:
    two = balancer(A, B)
    removed: list[Address] = []
    two.subscribe(removed=removed.append)
    two.set_addresses([B])
    assert removed == [A]
    assert {two.pick() for _ in range(5)} == {B}
    two.opened(A)
    two.closed(A)
    assert two.in_flight(A) == 0


def test_requests_of_an_address_that_left_are_not_taken_off_its_successor() -> None:
    two = balancer(A, B)
    two.opened(A)
    two.set_addresses([B])
    two.set_addresses([A, B])
    two.mark(A, ready=True)
    assert two.in_flight(A) == 1
    two.closed(A)
    assert two.in_flight(A) == 0
    two.closed(A)
    assert two.in_flight(A) == 0


def test_an_address_that_came_back_must_be_probed_first() -> None:
    one = balancer(A)
    one.opened(A)
    one.set_addresses([])
    one.mark(A, ready=True)
    assert not one.ready
    one.set_addresses([A])
    assert not one.ready
    one.mark(A, ready=True)
    assert one.pick() == A


def test_addresses_that_stay_keep_their_state() -> None:
    one = balancer(A)
    one.opened(A)
    one.set_addresses([A, B])
    assert one.is_ready(A)
    assert one.in_flight(A) == 1


def test_a_backup_serves_only_while_no_pod_is_ready() -> None:
    found = balancer(known=(A,), backup=(SERVICE,))
    found.mark(SERVICE, ready=True)
    assert found.pick() == SERVICE
    found.mark(A, ready=True)
    assert {found.pick() for _ in range(4)} == {A}
    assert found.ready_addresses == (A,)
    found.mark(A, ready=False)
    assert found.pick() == SERVICE
    assert found.addresses == (A, SERVICE)


def test_a_backup_is_counted_only_while_it_stands_in_for_the_pods() -> None:
    three = balancer(A, B, known=(C,), backup=(SERVICE,))
    three.mark(SERVICE, ready=True)
    assert (len(three.ready_addresses), three.unready) == (2, 1)
    three.mark(A, ready=False)
    three.mark(B, ready=False)
    assert (three.ready_addresses, three.unready) == ((SERVICE,), 3)
    three.mark(SERVICE, ready=False)
    assert (len(three.ready_addresses), three.unready) == (0, 3)


def test_listeners_hear_of_readiness_and_of_the_last_loss() -> None:
    two = balancer(known=(A, B))
    heard: list[str] = []
    two.subscribe(ready=lambda: heard.append("ready"), cold=lambda: heard.append("cold"))
    two.mark(A, ready=True)
    two.mark(A, ready=True)
    two.mark(B, ready=True)
    two.mark(A, ready=False)
    two.mark(A, ready=False)
    assert heard == ["ready", "ready"]
    two.mark(B, ready=False)
    assert heard == ["ready", "ready", "cold"]


def test_losing_all_addresses_is_going_cold() -> None:
    one = balancer(A)
    heard: list[str] = []
    one.subscribe(cold=lambda: heard.append("cold"))
    one.set_addresses([])
    assert heard == ["cold"]
    assert not one.ready


@pytest.mark.parametrize(
    ("address", "text"), [(A, "10.0.0.1:8000"), (Address("fd00::1", 80), "[fd00::1]:80")]
)
def test_addresses_print_as_they_are_written(address: Address, text: str) -> None:
    assert str(address) == text
