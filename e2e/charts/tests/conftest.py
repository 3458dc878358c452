"""One helm for the run, and a control plane for the tests that ask the API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_apiserver.client import wait_for
from noctaya_apiserver.keda import keda_crds
from noctaya_charts.helm import Helm
from noctaya_parts import ensure

SHARED = "plane"
"""Fixture that is expensive: tests that use it run in one process of pytest-xdist (`--dist loadgroup`)."""

SERVICE_MONITORS: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
"""Enough of the Prometheus operator for its kind to be known."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Divide the tests among the processes by what they share."""
    for item in items:
        group = SHARED if SHARED in getattr(item, "fixturenames", ()) else item.path.stem
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """helm without a cluster."""
    return Helm(ensure("helm")["helm"], home=tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that knows KEDA's kinds and none of ours."""
    objects = [*keda_crds(), SERVICE_MONITORS]
    with ControlPlane(tmp_path_factory.mktemp("plane"), objects=objects) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> ApiClient:
    """The administrator's client."""
    return plane.client()


@pytest.fixture(scope="session")
def cluster(helm: Helm, plane: ControlPlane) -> Helm:
    """helm with that control plane, as the administrator."""
    return helm.at(plane.kubeconfig())


@pytest.fixture
def own_crds(api: ApiClient) -> Iterator[tuple[str, ...]]:
    """Names of our CRDs, which a test installs and which are gone afterwards, with all their objects."""
    names = ("llmservices.serving.noctaya.io", "inferenceruntimes.serving.noctaya.io")
    paths = [f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}" for name in names]
    yield names
    for path in paths:
        api.delete(path)
    wait_for(lambda: not any(map(api.find, paths)), what="our CRDs are gone")
