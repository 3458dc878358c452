"""The rights the operator needs, as data: the chart renders them, a test holds its requests against them.

Secrets are read one by one by name; nothing gives the operator all Secrets of a cluster. Services are never
deleted by the operator: they go with theirs; a claim is only when `cache.replace` asks for it. `finalizers`
is what clusters with OwnerReferencesPermissionEnforcement ask of whoever sets `blockOwnerDeletion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from noctaya_api import names

Verbs = tuple[str, ...]
Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""

READ: Final[Verbs] = ("get", "list", "watch")
WRITE: Final[Verbs] = (*READ, "create", "patch")
OWN: Final[Verbs] = (*WRITE, "delete")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a Role or ClusterRole."""

    group: str
    resources: tuple[str, ...]
    verbs: Verbs

    def manifest(self) -> dict[str, list[str]]:
        """As Kubernetes writes it."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


CLUSTER_SCOPED: Final = (
    Rule(group=names.GROUP, resources=("inferenceruntimes",), verbs=READ),
    Rule(group=names.GROUP, resources=("inferenceruntimes/status",), verbs=("update",)),
    Rule(group="storage.k8s.io", resources=("storageclasses",), verbs=("list", "watch")),
)
"""Always in a ClusterRole."""

NAMESPACED: Final = (
    Rule(group=names.GROUP, resources=("llmservices",), verbs=READ),
    Rule(group=names.GROUP, resources=("llmservices/status", "llmservices/finalizers"), verbs=("update",)),
    Rule(group="apps", resources=("deployments",), verbs=OWN),
    Rule(group="", resources=("services",), verbs=WRITE),
    Rule(group="", resources=("persistentvolumeclaims",), verbs=OWN),
    Rule(group="", resources=("secrets",), verbs=("get", "create", "delete")),
    Rule(group="", resources=("pods",), verbs=("list", "watch", "patch")),
    Rule(group="batch", resources=("jobs",), verbs=OWN),
    Rule(group="policy", resources=("poddisruptionbudgets",), verbs=OWN),
    Rule(group="keda.sh", resources=("scaledobjects",), verbs=WRITE),
    Rule(group="discovery.k8s.io", resources=("endpointslices",), verbs=("list", "watch")),
    Rule(group="autoscaling", resources=("horizontalpodautoscalers",), verbs=("list", "watch")),
    Rule(group="events.k8s.io", resources=("events",), verbs=("list", "create", "patch")),
)
"""In the same ClusterRole, or with `--namespaces` in a Role of each of them."""

LEADER_ELECTION: Final = (
    Rule(group="coordination.k8s.io", resources=("leases",), verbs=("get", "watch", "create", "update")),
)
"""In a Role of the operator's own namespace."""

SELDOM: Final[Mapping[Right, str]] = {
    (names.GROUP, "llmservices/finalizers", "update"): (
        "never asked for by itself: the plugin OwnerReferencesPermissionEnforcement wants it of whoever sets "
        "blockOwnerDeletion"
    ),
    (names.GROUP, "llmservices", "get"): "a status that somebody else changed first is read anew",
    (names.GROUP, "inferenceruntimes", "get"): "a status that somebody else changed first is read anew",
}
"""Rights that a whole life of the operator may pass without, and what each is for. All others are used in it:
the tests of the real API server hold its audit log against these rules, both ways."""
