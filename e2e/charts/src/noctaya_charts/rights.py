"""The operator's rights as templates of its chart, from the rules its own tests hold its requests against."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from noctaya_operator.rbac import CLUSTER_SCOPED, LEADER_ELECTION, NAMESPACED, Rule

_HEAD: Final = "{{/* Generated from noctaya_operator.rbac by `python -m noctaya_charts write`. */}}\n"


def render_rights() -> str:
    """The file `_rights.tpl`: the rules for the cluster, for namespaces, for the leader's Lease."""
    parts = (("cluster", CLUSTER_SCOPED), ("namespaces", NAMESPACED), ("leaderElection", LEADER_ELECTION))
    return _HEAD + "".join(_template(f"noctaya.rights.{name}", rules) for name, rules in parts)


def _template(name: str, rules: Iterable[Rule]) -> str:
    lines = "\n".join(_rule(rule) for rule in rules)
    return f'\n{{{{- define "{name}" -}}}}\n{lines}\n{{{{- end -}}}}\n'


def _rule(rule: Rule) -> str:
    given = rule.manifest()
    return (
        f"- apiGroups: {json.dumps(given['apiGroups'])}\n"
        f"  resources: [{', '.join(given['resources'])}]\n"
        f"  verbs: [{', '.join(given['verbs'])}]"
    )
