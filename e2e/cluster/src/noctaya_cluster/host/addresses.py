"""Which private addresses the cluster uses: a block of 10.0.0.0/8 that this machine has no route for.

Nothing usual (10.244, 10.96) is taken: another cluster may be on the machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import ClusterError

BLOCKS: Final = (200, 208, 216, 224, 184, 176, 168, 136)
"""Second numbers to try; each takes three /16."""


@dataclass(frozen=True)
class Addresses:
    """All of a cluster's addresses, from the second number of its block."""

    block: int

    @property
    def link(self) -> str:
        """The network that the machines of the cluster share with this machine."""
        return f"10.{self.block}.0.0/24"

    @property
    def pods(self) -> str:
        """All pods; a /24 a node."""
        return f"10.{self.block + 1}.0.0/16"

    @property
    def services(self) -> str:
        """Cluster IPs."""
        return f"10.{self.block + 2}.0.0/16"

    @property
    def control(self) -> str:
        """The API server."""
        return f"10.{self.block}.0.1"

    @property
    def outside(self) -> str:
        """This machine, as the cluster sees it."""
        return f"10.{self.block}.0.254"

    @property
    def api_service(self) -> str:
        """The Service `kubernetes`."""
        return f"10.{self.block + 2}.0.1"

    @property
    def dns(self) -> str:
        """Cluster DNS."""
        return f"10.{self.block + 2}.0.10"

    def node(self, number: int) -> str:
        """A node, counted from 1."""
        return f"10.{self.block}.0.{10 + number}"

    def pods_of(self, number: int) -> str:
        """The pods of a node."""
        return f"10.{self.block + 1}.{number}.0/24"

    def bridge_of(self, number: int) -> str:
        """The node's address on its bridge of pods: their gateway."""
        return f"10.{self.block + 1}.{number}.1"

    def networks(self) -> tuple[str, str, str]:
        """Everything that gets a route."""
        return self.link, self.pods, self.services


def free_addresses(destinations: Iterable[str]) -> Addresses:
    """The first block that overlaps no route.

    Args:
        destinations: of the machine's routes and addresses, as `ip` prints them.

    Raises:
        ClusterError: every block is taken.
    """
    taken = [_network(text) for text in destinations if text != "default"]
    for block in BLOCKS:
        addresses = Addresses(block)
        ours = [ipaddress.ip_network(text) for text in addresses.networks()]
        if not any(each.overlaps(other) for each in ours for other in taken):
            return addresses
    raise ClusterError(
        "this machine has routes for every block of addresses that the cluster could use: "
        + ", ".join(f"10.{block}-{block + 2}.0.0/16" for block in BLOCKS)
    )


def _network(text: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(text, strict=False)
