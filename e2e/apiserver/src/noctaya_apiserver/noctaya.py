"""A control plane set up for Noctaya: its CRDs, KEDA's, and a user with the operator's rights."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from noctaya_parts import Report

from .client import ApiClient, Object, load_objects
from .control_plane import ControlPlane
from .keda import keda_crds
from .rights import operator_rights
from .users import User

REPOSITORY: Final = Path(__file__).parents[4]
"""This package is used in place, from a checkout."""
CRD_FOLDER: Final = REPOSITORY / "charts" / "operator" / "files" / "crds"
OPERATOR: Final = "operator"
"""User with the rights of `noctaya_operator.rbac` and no other."""

_numbers = itertools.count(1)


def noctaya_crds() -> list[Object]:
    """Our CRDs, as the chart ships them."""
    return load_objects(*sorted(CRD_FOLDER.glob("*.yaml")))


def noctaya_plane(
    folder: Path, *, keda: bool = True, users: Iterable[User] = (), report: Report = print
) -> ControlPlane:
    """A control plane with everything the operator needs, not started; `keda` is whether it knows KEDA.

    `users` are further ones, whose rights are up to the test.
    """
    objects = [*noctaya_crds(), *(keda_crds(report=report) if keda else []), *operator_rights(OPERATOR)]
    return ControlPlane(folder, users=[User(OPERATOR), *users], objects=objects, report=report)


def new_namespace(api: ApiClient) -> str:
    """Make a namespace of a name not used before in this process."""
    name = f"test-{next(_numbers)}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
