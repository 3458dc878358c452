"""Accelerators that are only numbers: an extended resource in the status of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from .kubectl import Kubectl

FAKE_ACCELERATOR: Final = "noctaya.io/fake-gpu"
FAKE_ACCELERATORS: Final = 8


def give_accelerators(kubectl: Kubectl, nodes: Iterable[str]) -> None:
    """Give each node its accelerators. Raises ClusterError."""
    capacity = {"status": {"capacity": {FAKE_ACCELERATOR: str(FAKE_ACCELERATORS)}}}
    for node in nodes:
        kubectl.run("patch", "node", node, "--subresource=status", "--type=merge", "-p", json.dumps(capacity))
