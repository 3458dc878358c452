"""Every object the renderers make, given to a real API server: nothing unknown, nothing invalid, no drift."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from noctaya_apiserver import ApiClient
from noctaya_apiserver.client import Object, path_of
from noctaya_operator.drift import drifted

GOLDEN = Path(__file__).parents[3] / "services" / "operator" / "tests" / "render" / "golden"
MANAGER = "noctaya-operator"


def recordings() -> list[Path]:
    return sorted(GOLDEN.glob("*/*.yaml"))


def recording_id(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def load(file: Path, namespace: str) -> Object:
    obj: Object = yaml.safe_load(file.read_text())
    obj["metadata"]["namespace"] = namespace
    return obj


@pytest.fixture(scope="module")
def rendered_in(api: ApiClient) -> str:
    """A namespace in which nothing is really made."""
    return make_namespace(api, "rendered-dry")


def namespace_of(api: ApiClient, file: Path) -> str:
    """One namespace for each recorded service."""
    name = f"rendered-{file.parent.name.replace('_', '-')}"
    return name if api.find(f"/api/v1/namespaces/{name}") else make_namespace(api, name)


def make_namespace(api: ApiClient, name: str) -> str:
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.mark.parametrize("file", recordings(), ids=recording_id)
def test_a_rendered_object_is_accepted_under_strict_validation(
    api: ApiClient, rendered_in: str, file: Path
) -> None:
    api.create(load(file, rendered_in), dryRun="All", fieldValidation="Strict", fieldManager=MANAGER)


@pytest.mark.parametrize("file", recordings(), ids=recording_id)
def test_o9_a_stored_object_is_no_drift_from_what_was_rendered(api: ApiClient, file: Path) -> None:
    obj = load(file, namespace_of(api, file))
    stored = api.apply(obj, manager=MANAGER, fieldValidation="Strict")
    assert not drifted(obj, stored)
    again = api.apply(obj, manager=MANAGER)
    assert again.get("spec") == stored.get("spec")
    assert again["metadata"].get("generation") == stored["metadata"].get("generation")


def test_o9_a_backend_made_at_zero_is_no_drift_once_applied(api: ApiClient, namespace: str) -> None:
    backend = load(GOLDEN / "minimal" / "Deployment-chat.yaml", namespace)
    at_zero = {**backend, "spec": {**backend["spec"], "replicas": 0}}
    api.create(at_zero, fieldManager="noctaya-operator-create")
    stored = api.apply(backend, manager=MANAGER)
    assert stored["spec"]["replicas"] == 0
    assert not drifted(backend, stored)
    scale = api.merge(f"{path_of(backend)}/scale", {"spec": {"replicas": 2}}, manager="keda")
    assert scale["spec"]["replicas"] == 2
    assert api.apply(backend, manager=MANAGER)["spec"]["replicas"] == 2
