"""go.mod of a module that can build other modules' programs.

`go install pkg@version` refuses a module whose go.mod has replacements, as Kubernetes' and KEDA's have. A
module of ours that requires it, and replaces what it replaces, builds its programs.
"""

from __future__ import annotations

import re
from typing import Final

from .catalogue import Group, Module
from .gotool import BuildError

_REPLACEMENT: Final = re.compile(
    r"^[ \t]*(?:replace[ \t]+)?(\S+)([ \t]+v\S+)?[ \t]+=>[ \t]+(.+?)[ \t]*(?://.*)?$", re.MULTILINE
)


def wrapper_module(group: Group, go_mods: dict[Module, str]) -> str:
    """go.mod for a group, before `go mod tidy`, from the go.mod files of its modules."""
    go_version = max((_go_version(text) for text in go_mods.values()), key=_as_numbers)
    replaced: list[str] = []
    for module, text in go_mods.items():
        replaced += replacements(module, text)
    return "\n".join(
        [
            f"module noctaya.io/parts/{group.name}",
            f"go {go_version}",
            *(f"require {module.path} v{module.version}" for module in group.modules),
            *dict.fromkeys(replaced),
            "",
        ]
    )


def replacements(module: Module, go_mod: str) -> list[str]:
    """What must be replaced to build a module as its authors do.

    Replacing by a folder of one's own repository is for development when a published version is required
    (etcd). When v0.0.0 is (Kubernetes), the folder is published with the same release: v1.N.P of Kubernetes
    is v0.N.P of each `k8s.io/x`. Raises BuildError when neither holds.
    """
    required = dict(re.findall(r"^\s*(?:require\s+)?(\S+)\s+(v\S+)", go_mod, re.MULTILINE))
    found = []
    for old, version, new in _REPLACEMENT.findall(go_mod):
        if not new.startswith("."):
            found.append(f"replace {old}{version} => {new}")
        elif new.startswith("./staging/"):
            found.append(f"replace {old} => {old} v0.{module.version.split('.', 1)[1]}")
        elif required.get(old) == "v0.0.0":
            raise BuildError(f"{module.pinned} replaces {old} by {new}, which is not published")
    if module.name == "kubernetes" and not found:
        raise BuildError(f"the go.mod of {module.pinned} replaces nothing by ./staging any more")
    return found


def tools_file(group: Group) -> str:
    """The Go file that makes `go mod tidy` keep what the programs need."""
    imports = "".join(f'\t_ "{part.package}"\n' for part in group.parts)
    return f"//go:build tools\n\npackage tools\n\nimport (\n{imports})\n"


def _go_version(go_mod: str) -> str:
    found = re.search(r"^go (\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise BuildError("a go.mod names no version of Go")
    return found[1]


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
