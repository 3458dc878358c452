"""KEDA's CRDs, as its own module ships them: no KEDA runs here, but the API server knows its kinds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import yaml
from noctaya_parts import BuildError, Report, module_folder
from noctaya_parts.catalogue import MODULES, cache_root
from noctaya_parts.locking import locked

MODULE: Final = MODULES["keda"].pinned


def ensure_keda_crds(*, report: Report = print) -> Path:
    """A folder with one YAML file a CRD, copied out of the Go module once. Raises BuildError."""
    folder = cache_root() / f"keda-crds-{MODULES['keda'].version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(
            folder.with_name(f"{folder.name}.lock"),
            waiting=lambda: report("another download of KEDA is running, waiting"),
        ):
            if not folder.exists():
                _fetch(folder, report)
    return folder


def keda_crds(*, report: Report = print) -> list[dict[str, Any]]:
    """KEDA's CRDs as objects."""
    return [
        yaml.safe_load(file.read_text()) for file in sorted(ensure_keda_crds(report=report).glob("*.yaml"))
    ]


def _fetch(folder: Path, report: Report) -> None:
    report(f"downloading {MODULE} for its CRDs")
    source = module_folder("keda") / "config" / "crd"
    kustomization = yaml.safe_load((source / "kustomization.yaml").read_text())
    crds = {crd["metadata"]["name"]: crd for crd in _documents(source, kustomization["resources"])}
    if not crds:
        raise BuildError(f"{MODULE} has no CRDs in config/crd")
    for entry in kustomization.get("patches", []):
        (operations,) = _documents(source, [entry["path"]])
        patch(crds[entry["target"]["name"]], operations)
    with tempfile.TemporaryDirectory(prefix=".keda-", dir=folder.parent) as work:
        partial = Path(work) / "crds"
        partial.mkdir()
        for name, crd in crds.items():
            (partial / f"{name}.yaml").write_text(yaml.safe_dump(crd, sort_keys=False))
        partial.rename(folder)


def patch(document: Any, operations: list[dict[str, Any]]) -> None:
    """Carry out what KEDA's kustomization has of JSON Patch (RFC 6902): `add` and `remove`. In place."""
    for operation in operations:
        *parents, last = operation["path"].removeprefix("/").split("/")
        target = document
        for step in parents:
            target = target[int(step)] if isinstance(target, list) else target[step]
        match operation["op"], target:
            case "add", list() if last == "-":
                target.append(operation["value"])
            case "add", dict():
                target[last] = operation["value"]
            case "remove", dict():
                del target[last]
            case unknown, _:
                raise BuildError(f"{MODULE}: its kustomization has a {unknown!r} at {operation['path']}")


def _documents(folder: Path, names: list[str]) -> list[Any]:
    return [yaml.safe_load((folder / name).read_text()) for name in names]
