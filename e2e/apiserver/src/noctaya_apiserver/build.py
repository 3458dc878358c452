"""The programs of a control plane, as noctaya_parts has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from noctaya_parts import Report, ensure


@dataclass(frozen=True)
class Binaries:
    """Paths of the built programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path


def ensure_binaries(*, report: Report = print) -> Binaries:
    """The binaries, built when they are not in the cache; then it takes minutes.

    Raises:
        BuildError: no Go, no network, or the compiler failed.
    """
    parts = ensure("etcd", "kube-apiserver", "kube-controller-manager", report=report)
    return Binaries(*parts.values())
