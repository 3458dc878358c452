"""The operator's rights as objects of RBAC: the rules of `noctaya_operator.rbac`, as the chart has them.

Needs `noctaya-operator` installed, as everything here does that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noctaya_operator.rbac import CLUSTER_SCOPED, LEADER_ELECTION, NAMESPACED, Rule

from .client import Object

SYSTEM: Final = "noctaya-system"
"""Namespace of the operator's own Lease."""
API: Final = "rbac.authorization.k8s.io"


def operator_rights(user: str, *, without: frozenset[tuple[str, str]] = frozenset()) -> list[Object]:
    """A namespace for the Lease, and for `user` what the operator may do in a whole cluster.

    Args:
        user: a name of the token file.
        without: (group, resource) left out, to see what a right is for.
    """
    name = f"noctaya-{user}"
    rules = [_less(rule, without) for rule in (*CLUSTER_SCOPED, *NAMESPACED)]
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    return [
        namespace,
        *_granted("Cluster", user, {"name": name}, [rule for rule in rules if rule["resources"]]),
        *_granted("", user, {"name": f"{name}-lease", "namespace": SYSTEM}, _manifests(LEADER_ELECTION)),
    ]


def _granted(scope: str, user: str, metadata: Object, rules: list[Object]) -> list[Object]:
    role: Object = {"apiVersion": f"{API}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": rules}
    binding: Object = {
        "apiVersion": f"{API}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": API, "kind": f"{scope}Role", "name": metadata["name"]},
        "subjects": [{"apiGroup": API, "kind": "User", "name": user}],
    }
    return [role, binding]


def _manifests(rules: Iterable[Rule]) -> list[Object]:
    return [{**rule.manifest()} for rule in rules]


def _less(rule: Rule, without: frozenset[tuple[str, str]]) -> Object:
    kept = [each for each in rule.resources if (rule.group, each) not in without]
    return {**rule.manifest(), "resources": kept}
