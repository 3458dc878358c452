"""One control plane for the whole run, one operator in it, and a namespace of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from noctaya_apiserver import ApiClient, ControlPlane, User, keda_crds, load_objects
from noctaya_apiserver.client import Object

ROOT = Path(__file__).parents[3]
CRDS = load_objects(*sorted((ROOT / "charts" / "operator" / "crds").glob("*.yaml")))
RIGHTS = load_objects(Path(__file__).with_name("operator_rights.yaml"))
OPERATOR_USER = "operator"

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def crds() -> list[Object]:
    """Our CRDs."""
    return CRDS


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that tests share; nobody stops or restarts it."""
    folder = tmp_path_factory.mktemp("plane")
    with new_plane(folder) as plane:
        yield plane


def new_plane(folder: Path, *, keda: bool = True) -> ControlPlane:
    """A control plane with our CRDs and the operator's rights, not started."""
    crds = [*CRDS, *(keda_crds() if keda else [])]
    return ControlPlane(folder, users=[User(OPERATOR_USER)], objects=[*crds, *RIGHTS])


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> ApiClient:
    """The administrator's client."""
    return plane.client()


@pytest.fixture
def namespace(api: ApiClient) -> Iterator[str]:
    """A new namespace, deleted afterwards without waiting."""
    name = f"test-{next(_numbers)}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete(f"/api/v1/namespaces/{name}")
