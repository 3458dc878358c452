"""Links and routes: each machine of the cluster has a link to a bridge in the control machine, as have we.

    this machine ── noctaya-<key> ─┐
                      node-1 eth0 ─┼─ bridge `machines` in the control machine (API server)
                      node-2 eth0 ─┘

Each node has a bridge of pods behind it, made by the CNI plugin. This machine has one link and its routes and
nothing else: no bridge, no iptables rule, no sysctl. A Docker that drops forwarded packets does not matter.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from typing import Final

from ..errors import ClusterError
from .addresses import Addresses, free_addresses
from .layout import Layout
from .machines import Machine, environment

BRIDGE: Final = "machines"
NOT_PLACES: Final = {"broadcast", "multicast"}


def free_block() -> int:
    """A block of addresses that this machine has no route to. Raises ClusterError."""
    shown = _ip("-json", "-4", "route", "show", "table", "all")
    if shown.returncode != 0:
        raise ClusterError(f"ip route: {shown.stderr.strip()}")
    routes = json.loads(shown.stdout)
    return free_addresses(route["dst"] for route in routes if route.get("type") not in NOT_PLACES).block


def connect(layout: Layout, addresses: Addresses, control: Machine, nodes: list[Machine]) -> None:
    """Make all links and routes."""
    _batch(link_commands(layout.link, control.holder.pid, [node.holder.pid for node in nodes]))
    control.run(["ip", "-batch", "-"], stdin="\n".join(control_commands(addresses, len(nodes))))
    for number, node in enumerate(nodes, start=1):
        node.run(["ip", "-batch", "-"], stdin="\n".join(node_commands(addresses, number, len(nodes))))
        node.run(["iptables-restore", "--noflush"], stdin=node_rules(addresses))
        node.run(["sh", "-ec", "; ".join(f"echo {value} > {path}" for path, value in NODE_SYSCTLS.items())])
    _batch(outside_commands(layout.link, addresses, len(nodes)))


def link_exists(name: str) -> bool:
    """Whether this machine has the link."""
    return _ip("link", "show", "dev", name).returncode == 0


def disconnect(layout: Layout) -> None:
    """Remove our link, and with it its routes; the others went with their machines."""
    if link_exists(layout.link):
        done = _ip("link", "delete", "dev", layout.link)
        if done.returncode != 0 and link_exists(layout.link):  # it may have gone with its peer meanwhile
            raise ClusterError(f"the link {layout.link} can't be removed: {done.stderr.strip()}")


NODE_SYSCTLS: Final = {
    "/proc/sys/net/ipv4/ip_forward": "1",
    "/proc/sys/net/bridge/bridge-nf-call-iptables": "1",
}
"""Of a node's network namespace; the machine's own stay as they are."""


def link_commands(link: str, control: int, nodes: Iterable[int]) -> list[str]:
    """For `ip -batch` outside: make the pairs, their ends with the processes that hold the machines."""
    commands = [f"link add {link} type veth peer name outside netns {control}"]
    for number, pid in enumerate(nodes, start=1):
        # Both ends are made in place: never a moment with a link of a common name on this machine.
        commands.append(f"link add to-node-{number} netns {control} type veth peer name eth0 netns {pid}")
    return commands


def control_commands(addresses: Addresses, nodes: int) -> list[str]:
    """For `ip -batch` in the control machine."""
    ports = ["outside", *(f"to-node-{number}" for number in range(1, nodes + 1))]
    return [
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {addresses.control}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        *(f"link set {port} master {BRIDGE} up" for port in ports),
        *_routes(addresses, nodes),
    ]


def node_commands(addresses: Addresses, number: int, nodes: int) -> list[str]:
    """For `ip -batch` in a node."""
    others = [other for other in range(1, nodes + 1) if other != number]
    return [
        "link set lo up",
        f"address add {addresses.node(number)}/24 dev eth0",
        "link set eth0 up",
        *(f"route add {addresses.pods_of(other)} via {addresses.node(other)}" for other in others),
        # For programs of the node itself: a connection needs a route before its address is translated.
        f"route add {addresses.services} via {addresses.control}",
    ]


def node_rules(addresses: Addresses) -> str:
    """For `iptables-restore` in a node: an address of a Service that was not translated is refused.

    A connection made before kube-proxy knows the Service would otherwise wait for nobody.
    """
    reset = f"-d {addresses.services} -p tcp -j REJECT --reject-with tcp-reset"
    refuse = f"-d {addresses.services} -j REJECT"
    rules = [f"-A {chain} {rule}" for chain in ("FORWARD", "OUTPUT") for rule in (reset, refuse)]
    return "\n".join(["*filter", *rules, "COMMIT", ""])


def outside_commands(link: str, addresses: Addresses, nodes: int) -> list[str]:
    """For `ip -batch` on this machine."""
    return [
        f"address add {addresses.outside}/24 dev {link}",
        f"link set {link} up",
        *_routes(addresses, nodes),
    ]


def _routes(addresses: Addresses, nodes: int) -> list[str]:
    pods = (f"route add {addresses.pods_of(n)} via {addresses.node(n)}" for n in range(1, nodes + 1))
    return [*pods, f"route add {addresses.services} via {addresses.node(1)}"]


def _batch(commands: list[str]) -> None:
    done = subprocess.run(
        ["ip", "-batch", "-"],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"ip: {done.stderr.strip()}")


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, env=environment(), check=False)
