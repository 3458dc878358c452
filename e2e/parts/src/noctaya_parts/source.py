"""The source of a pinned module: manifests and CRDs are in there."""

from __future__ import annotations

from pathlib import Path

from .catalogue import MODULES, UnknownPart
from .gotool import Go


def module_folder(name: str) -> Path:
    """The folder of a module (`keda`, `kubernetes`, `etcd`, `helm`, ...) in Go's module cache, read-only.

    Downloaded when it is not there. Raises BuildError, UnknownPart.
    """
    if name not in MODULES:
        raise UnknownPart(f"there is no module {name!r}; there are {', '.join(MODULES)}")
    return Path(Go().download(MODULES[name].pinned)["Dir"])
