"""A real Kubernetes API server for tests, without Docker: `ControlPlane`, `python -m noctaya_apiserver`."""

from __future__ import annotations

from noctaya_parts import BuildError

from .audit import Request
from .build import Binaries, ensure_binaries
from .child import Child, ChildFailed
from .client import ApiClient, Refused, load_objects, path_of, wait_for
from .control_plane import RUNNING_CONTROLLERS, ControlPlane
from .keda import keda_crds
from .users import User

__all__ = [
    "RUNNING_CONTROLLERS",
    "ApiClient",
    "Binaries",
    "BuildError",
    "Child",
    "ChildFailed",
    "ControlPlane",
    "Refused",
    "Request",
    "User",
    "ensure_binaries",
    "keda_crds",
    "load_objects",
    "path_of",
    "wait_for",
]
