"""Ports of services and replicas."""

import socket
from collections.abc import Iterator

import pytest
from noctaya_cli.ports import LOOPBACK, PortPool, PortUnavailable, check_free, port_range, service_ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_somebody_listens_on_is_named_in_the_error(taken: int) -> None:
    with pytest.raises(PortUnavailable, match=f"can't listen on 127.0.0.1:{taken}: Address already in use"):
        check_free(LOOPBACK, taken)


def test_an_address_that_is_not_here_is_an_error() -> None:
    with pytest.raises(PortUnavailable, match=r"192\.0\.2\.1"):
        check_free("192.0.2.1", 8080)


def test_the_pool_gives_each_port_once_until_it_comes_back() -> None:
    pool = PortPool()
    ports = [pool.take() for _ in range(50)]
    assert len(set(ports)) == 50
    low, high = port_range()
    assert all(low <= port <= high for port in ports)


def test_replica_ports_are_outside_the_ephemeral_range() -> None:
    with socket.socket() as ephemeral:
        ephemeral.bind((LOOPBACK, 0))
        low, high = port_range()
        assert not low <= ephemeral.getsockname()[1] <= high


def test_the_first_service_gets_the_wanted_port_and_the_others_the_next_free_ones() -> None:
    pool = PortPool()
    first = pool.take()
    with socket.create_server((LOOPBACK, first + 1)):
        ports = service_ports(LOOPBACK, first=first, count=3, pool=pool)
    assert ports[0] == first
    assert first + 1 not in ports
    assert ports == sorted(set(ports))


def test_a_wanted_port_that_is_taken_is_an_error(taken: int) -> None:
    with pytest.raises(PortUnavailable, match=str(taken)):
        service_ports(LOOPBACK, first=taken, count=1, pool=PortPool())


def test_port_0_takes_any_free_ports() -> None:
    assert len(set(service_ports(LOOPBACK, first=0, count=3, pool=PortPool()))) == 3
