"""Links, routes and rules as text, before anything is done."""

from __future__ import annotations

from pathlib import Path

from noctaya_cluster.host.addresses import Addresses
from noctaya_cluster.host.layout import Layout
from noctaya_cluster.host.network import (
    control_commands,
    link_commands,
    node_commands,
    node_rules,
    outside_commands,
)

ADDRESSES = Addresses(200)


def test_this_machine_gets_one_link_with_routes_and_nothing_else() -> None:
    commands = outside_commands("noctaya-abc", ADDRESSES, 2)

    assert commands == [
        "address add 10.200.0.254/24 dev noctaya-abc",
        "link set noctaya-abc up",
        "route add 10.201.1.0/24 via 10.200.0.11",
        "route add 10.201.2.0/24 via 10.200.0.12",
        "route add 10.202.0.0/16 via 10.200.0.11",
    ]


def test_links_are_made_with_their_ends_in_place() -> None:
    commands = link_commands("noctaya-abc", 100, [201, 202])

    assert commands[0] == "link add noctaya-abc type veth peer name outside netns 100"
    # No moment with an `eth0` or `to-node-1` of ours on this machine, which may have its own.
    for line, pid in zip(commands[1:], (201, 202), strict=True):
        assert "netns 100" in line
        assert f"netns {pid}" in line


def test_every_port_is_on_the_bridge_of_the_control_machine() -> None:
    commands = control_commands(ADDRESSES, 2)

    for port in ("outside", "to-node-1", "to-node-2"):
        assert f"link set {port} master machines up" in commands
    assert "address add 10.200.0.1/24 dev machines" in commands


def test_a_node_reaches_the_pods_of_the_other_and_services() -> None:
    commands = node_commands(ADDRESSES, 2, 2)

    assert "address add 10.200.0.12/24 dev eth0" in commands
    assert "route add 10.201.1.0/24 via 10.200.0.11" in commands
    assert not any("10.201.2.0" in line for line in commands)  # its own are behind its bridge
    assert any(line.startswith("route add 10.202.0.0/16 ") for line in commands)


def test_a_service_that_is_not_known_refuses_instead_of_letting_wait() -> None:
    rules = node_rules(ADDRESSES).splitlines()

    assert rules[0] == "*filter"
    assert rules[-1] == "COMMIT"
    for chain in ("FORWARD", "OUTPUT"):
        ours = [rule for rule in rules if rule.startswith(f"-A {chain} ")]
        assert [rule.split()[-1] for rule in ours] == ["tcp-reset", "REJECT"]
        assert all("-d 10.202.0.0/16" in rule for rule in ours)


def test_link_names_fit_and_differ_between_state_folders(tmp_path: Path) -> None:
    one, other = Layout(tmp_path / "one"), Layout(tmp_path / "other")

    assert len(one.link) <= 15  # IFNAMSIZ less one
    assert one.link != other.link
    assert one.cgroup != other.cgroup
