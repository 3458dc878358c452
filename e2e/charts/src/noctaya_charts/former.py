"""Former versions of the operator's chart, to upgrade from.

No release before this one can be had. The alpha's chart is written after its contract, and a former version
of this chart is the tree's own under another version. Both get CRDs that lack what this version's have more.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from noctaya_charts.generated import CHARTS

ALPHA: Final = Path(__file__).with_name("alpha")
NEW_FIELDS: Final = (
    ("LLMService", ("spec", "cache", "retain")),
    ("LLMService", ("spec", "endpoint", "coldStart", "heartbeats")),
    ("InferenceRuntime", ("spec", "container", "command")),
)
"""Fields that the alpha's CRDs did not have, so that its API server dropped them."""


def former_chart(folder: Path, *, version: str) -> Path:
    """This chart as one of an earlier version, whose CRDs lack the new fields. Returns its folder."""
    chart = folder / "noctaya"
    shutil.copytree(CHARTS / "operator", chart)
    for file in (chart / "files" / "crds").iterdir():
        file.write_text(_without_new_fields(file))
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    described |= {"version": version, "appVersion": version}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(described))
    return chart


def alpha_chart(folder: Path) -> Path:
    """The chart of the v0.4 alpha, with CRDs that Helm installs and never upgrades. Returns its folder."""
    chart = folder / "noctaya"
    shutil.copytree(ALPHA, chart)
    (chart / "crds").mkdir()
    for file in (CHARTS / "operator" / "files" / "crds").iterdir():
        (chart / "crds" / file.name).write_text(_without_new_fields(file))
    return chart


def _without_new_fields(file: Path) -> str:
    crd = yaml.safe_load(file.read_text())
    for kind, path in NEW_FIELDS:
        if crd["spec"]["names"]["kind"] == kind:
            for version in crd["spec"]["versions"]:
                _remove(version["schema"]["openAPIV3Schema"], path)
    return yaml.safe_dump(crd, sort_keys=False)


def _remove(schema: dict[str, Any], path: tuple[str, ...]) -> None:
    """Take a field out of a schema. Defaults of what surrounds it and rules that name it must not stay."""
    *above, field = path
    for part in above:
        schema = schema["properties"][part]
        if isinstance(schema.get("default"), dict):
            schema["default"].pop(field, None)
    del schema["properties"][field]
    rules = schema.get("x-kubernetes-validations")
    if rules:
        schema["x-kubernetes-validations"] = [rule for rule in rules if f".{field}" not in rule["rule"]]
