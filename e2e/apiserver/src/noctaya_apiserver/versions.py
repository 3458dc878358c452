"""The one place where versions are pinned; the cache is keyed by them."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

KUBERNETES: Final = "1.34.4"
ETCD: Final = "3.6.4"
KEDA: Final = "2.20.2"


def cache_root() -> Path:
    """The folder for everything built or unpacked; `$XDG_CACHE_HOME` moves it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "noctaya" / "apiserver"


def binaries_folder() -> Path:
    """Where the binaries of these versions live for this kind of machine."""
    machine = f"{platform.system()}-{platform.machine()}".lower()
    return cache_root() / f"kubernetes-{KUBERNETES}-etcd-{ETCD}-{machine}"


def keda_folder() -> Path:
    """Where the CRDs of this version of KEDA live."""
    return cache_root() / f"keda-{KEDA}"
