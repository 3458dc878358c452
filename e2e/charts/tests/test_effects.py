"""Every value does something: a changed one changes what is rendered. A value that nobody reads is a lie."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from noctaya_charts.definitions import DEFINITIONS
from noctaya_charts.generated import CHARTS, NAMES
from noctaya_charts.helm import Helm
from noctaya_charts.matrix import MATRIX, Values
from noctaya_charts.values import Value, parse_values

BASE: Final[dict[str, Values]] = {
    "operator": MATRIX["operator"]["everything"],
    "gateway": {
        **MATRIX["gateway"]["everything"],
        "tls": {"serverSecret": "tls", "authenticationRef": {"name": "keda"}},
    },
    "aggregate-scaler": MATRIX["aggregate-scaler"]["everything"],
    "prewarm-agent": MATRIX["prewarm-agent"]["everything"],
}
SPECIAL: Final[dict[str, Values]] = {
    "gateway/backend.url": MATRIX["gateway"]["in front of a Service"],
    "gateway/backend.endpoints": MATRIX["gateway"]["in front of a Service"],
    "gateway/gateway.heartbeatInterval": MATRIX["gateway"]["one"],
    "gateway/gateway.affinity": MATRIX["gateway"]["several"],
    "prewarm-agent/source.region": MATRIX["prewarm-agent"]["bucket"],
    "prewarm-agent/source.files.include": MATRIX["prewarm-agent"]["bucket"],
    "prewarm-agent/source.files.exclude": MATRIX["prewarm-agent"]["bucket"],
    "operator/operator.leaderElect": MATRIX["operator"]["one"],
    "operator/operator.podDisruptionBudget.enabled": MATRIX["operator"]["defaults"],
    "operator/metrics.enabled": MATRIX["operator"]["defaults"],
    "gateway/aggregateScaler.url": MATRIX["gateway"]["reporting elsewhere"],
    "operator/serviceAccount.create": {"serviceAccount": {"name": "someone"}},
}
"""Values that show only where others are so."""
OTHER: Final[dict[str, Any]] = {
    "backend.url": "http://other.models.svc",
    "backend.endpoints": "dns://other:8000",
    "backend.healthPath": "/other",
    "aggregateScaler.url": "http://other:9091",
    "source.uri": "oci://r.example.com:5000/models/other@sha256:" + "6" * 64,
    "source.endpoint": "",
    "job.stagingSize": "1Gi",
    "operator.extraArgs": ["--lease-duration=20s"],
    "tracing.endpoint": "http://other:4318",
}
"""Other values, where the type does not give one."""


def leaves() -> Iterator[tuple[str, Value]]:
    for chart in NAMES:
        for value in parse_values((CHARTS / chart / "values.yaml").read_text()):
            yield from ((chart, leaf) for leaf in value.leaves())


@pytest.mark.parametrize(("chart", "leaf"), list(leaves()), ids=lambda part: getattr(part, "name", part))
def test_every_value_changes_what_is_rendered(helm: Helm, chart: str, leaf: Value) -> None:
    base = SPECIAL.get(f"{chart}/{leaf.name}", BASE[chart])
    changed = copy.deepcopy(base)
    given = at(base, leaf)
    put(changed, leaf, OTHER.get(leaf.name, other(leaf, given)))
    assert rendered(helm, chart, changed) != rendered(helm, chart, base)


@functools.cache
def _rendered(helm: Helm, chart: str, values: str) -> list[Any]:
    objects = helm.template(CHARTS / chart, json.loads(values))
    # Secrets are random in every rendering.
    return [{**each, "data": None} if each["kind"] == "Secret" else each for each in objects]


def rendered(helm: Helm, chart: str, values: Values) -> list[Any]:
    """What the chart makes of the values; each set is rendered once, for many values change the same one."""
    return _rendered(helm, chart, json.dumps(values))


def at(values: Values, leaf: Value) -> Any:
    found: Any = values
    for part in leaf.path:
        if not isinstance(found, dict) or part not in found:
            return leaf.default
        found = found[part]
    return found


def put(values: Values, leaf: Value, value: Any) -> None:
    for part in leaf.path[:-1]:
        values = values.setdefault(part, {})
    values[leaf.path[-1]] = value


def other(leaf: Value, given: Any) -> Any:
    """Another value of the same kind."""
    schema = DEFINITIONS[leaf.schema] if isinstance(leaf.schema, str) else dict(leaf.schema or {})
    if "enum" in schema:
        return next(each for each in schema["enum"] if each not in ("", given))
    if leaf.schema in ("duration", "optionalDuration"):
        return "47s"
    match given:
        case bool():
            return not given
        case int() | float():
            return given + 1 if leaf.schema != "ratio" else 0.5
        case str():
            return "other"
        case list():
            return [{"name": "OTHER", "value": "x"}] if leaf.schema == "env" else _more(leaf)
        case _:
            return _mapping(leaf)


def _more(leaf: Value) -> list[Any]:
    return ["other"] if leaf.schema in ("strings", "namespaces", "pullSecrets") else [{"other": "x"}]


def _mapping(leaf: Value) -> dict[str, Any]:
    if leaf.schema in ("resources", "cpuAndMemory"):
        return {"limits": {"memory": "1Gi"}}
    return {"fsGroup": 7} if leaf.name.endswith("SecurityContext") else {"other": "x"}


EMPTIED = [(chart, leaf) for chart, leaf in leaves() if isinstance(leaf.default, dict | list)]
REQUIRED = {"backend.selector"}


@pytest.mark.parametrize("chart", NAMES)
def test_null_takes_out_every_list_and_mapping_as_helm_s_users_know_it(helm: Helm, chart: str) -> None:
    emptied: Values = copy.deepcopy(BASE[chart])
    for owner, leaf in EMPTIED:
        if owner == chart and leaf.name not in REQUIRED:
            put(emptied, leaf, None)
    assert rendered(helm, chart, emptied)
