"""The operators of a release: which are ready, which one leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from noctaya_scenarios.lab import Lab
from noctaya_scenarios.release import LEASE, NAMESPACE, OPERATOR, OPERATOR_LABELS
from noctaya_scenarios.scene import holds
from noctaya_scenarios.waiting import until

PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


def operators(lab: Lab) -> dict[str, str]:
    """Nodes of the ready operators, by Pod."""
    pods = lab.api.items(PODS, labelSelector=OPERATOR_LABELS)
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"] and holds(pod["status"], "Ready")
    }


def leader(lab: Lab) -> str:
    """Pod of the operator that holds the lease; blank while nobody does."""
    holder: str = lab.api.get(LEASE)["spec"].get("holderIdentity") or ""
    return holder.rpartition("_")[0]


def both_operators(lab: Lab) -> dict[str, str]:
    """Two ready operators, one of which leads; their nodes by Pod."""
    return until(
        lambda: found if len(found := operators(lab)) == 2 and leader(lab) in found else {},
        within=120,
        what="two ready operators, one of them leading",
        seen=lambda: (operators(lab), leader(lab)),
    )


@contextmanager
def no_operators(lab: Lab) -> Iterator[None]:
    """Within the block no operator runs, not even one that is about to leave: that works until it is gone."""
    scale = ("-n", NAMESPACE, "scale", f"deployment/{OPERATOR}")
    lab.access.kubectl(*scale, "--replicas=0")
    try:
        until(
            lambda: not lab.api.items(PODS, labelSelector=OPERATOR_LABELS),
            within=120,
            what="no operator runs",
        )
        yield
    finally:
        lab.access.kubectl(*scale, "--replicas=2")


def apart(lab: Lab) -> dict[str, str]:
    """Two ready operators on two nodes. A drain leaves both on one, and nobody moves them back."""
    found = both_operators(lab)
    if len(set(found.values())) == 1:
        (standby,) = found.keys() - {leader(lab)}
        lab.api.delete(f"{PODS}/{standby}")
        until(lambda: standby not in operators(lab), within=60, what=f"{standby} is gone")
        found = both_operators(lab)
    assert len(set(found.values())) == 2, f"both operators are on one node: {found}"
    return found
