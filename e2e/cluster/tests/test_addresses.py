"""Which addresses the host cluster takes."""

from __future__ import annotations

import ipaddress

import pytest
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.host.addresses import BLOCKS, Addresses, free_addresses


@pytest.mark.parametrize("block", BLOCKS)
def test_every_address_is_private_and_inside_its_network(block: int) -> None:
    addresses = Addresses(block)
    link, pods, services = map(ipaddress.ip_network, addresses.networks())

    assert all(network.is_private for network in (link, pods, services))
    for inside in (addresses.control, addresses.outside, addresses.node(1), addresses.node(2)):
        assert ipaddress.ip_address(inside) in link
    for number in (1, 2):
        assert ipaddress.ip_network(addresses.pods_of(number)).subnet_of(pods)  # type: ignore[arg-type]
        assert ipaddress.ip_address(addresses.bridge_of(number)) in ipaddress.ip_network(
            addresses.pods_of(number)
        )
    assert ipaddress.ip_address(addresses.dns) in services
    assert ipaddress.ip_address(addresses.api_service) == services[1]


def test_blocks_do_not_overlap_each_other_nor_what_other_clusters_take() -> None:
    networks = [ipaddress.ip_network(text) for block in BLOCKS for text in Addresses(block).networks()]
    usual = [ipaddress.ip_network(text) for text in ("10.244.0.0/16", "10.96.0.0/12", "10.42.0.0/15")]

    for index, network in enumerate(networks):
        assert not any(network.overlaps(other) for other in networks[index + 1 :])
        assert not any(network.overlaps(other) for other in usual)


def test_a_machine_without_such_routes_gets_the_first_block() -> None:
    assert free_addresses(["default", "192.0.2.0/24", "127.0.0.0/8", "192.0.2.2"]).block == BLOCKS[0]


@pytest.mark.parametrize(
    "route",
    [
        f"10.{BLOCKS[0]}.0.0/24",
        f"10.{BLOCKS[0] + 1}.77.0/24",
        f"10.{BLOCKS[0] + 2}.0.9",
        f"10.{BLOCKS[0]}.0.0/14",
    ],
)
def test_a_block_that_a_route_overlaps_is_left_alone(route: str) -> None:
    assert free_addresses(["default", route]).block == BLOCKS[1]


def test_when_all_blocks_are_taken_the_error_names_them() -> None:
    with pytest.raises(ClusterError, match=rf"10\.{BLOCKS[0]}-{BLOCKS[0] + 2}\.0\.0/16"):
        free_addresses(["10.0.0.0/8"])
