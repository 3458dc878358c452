"""examples/security onto a real API server, each folder into a namespace of its own, the operator at work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from noctaya_apiserver import ApiClient
from noctaya_apiserver.client import CLUSTER_SCOPED, Object, load_objects, plural_of
from noctaya_apiserver.noctaya import REPOSITORY, new_namespace
from noctaya_apiserver.world import API, World, runtime

EXAMPLES: Final = REPOSITORY / "examples" / "security"
FOLDERS: Final = sorted(file.parent for file in EXAMPLES.glob("*/kustomization.yaml"))
SERVING: Final = {"client-keys", "mtls"}
"""Those that have a service."""


def certificate_kinds() -> list[Object]:
    """Enough of cert-manager for its kinds to be known."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io",
                "names": {"kind": kind, "plural": f"{kind.lower()}s"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }
        for kind in ("Issuer", "Certificate")
    ]


def objects_of(folder: Path) -> list[Object]:
    """What `kubectl apply -k` makes of a folder: resources, those of other folders, generated Secrets."""
    plan = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found: list[Object] = []
    for name in plan["resources"]:
        path = (folder / name).resolve()
        found += objects_of(path) if path.is_dir() else load_objects(path)
    for secret in plan.get("secretGenerator", ()):
        pairs = (literal.partition("=") for literal in secret["literals"])
        data = {key: value for key, _, value in pairs}
        metadata = {"name": secret["name"]}
        found.append({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
    return found


def applied(api: ApiClient, folder: Path, namespace: str) -> list[Object]:
    """Apply strictly: a field that the server does not know is an error."""
    found = []
    for obj in objects_of(folder):
        if plural_of(obj["kind"]) not in CLUSTER_SCOPED:
            obj["metadata"]["namespace"] = namespace
        found.append(api.apply(obj, fieldValidation="Strict"))
    return found


def test_every_folder_is_an_example_and_is_told_of() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    folders = {each for each in EXAMPLES.iterdir() if each.is_dir()}
    assert folders == set(FOLDERS)
    assert all(f"[{each.name}]({each.name})" in readme for each in folders)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_lists_all_of_its_files(folder: Path) -> None:
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    files = {file.name for file in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == {name for name in listed if not name.startswith("..")}


@pytest.fixture
def nvidia(api: ApiClient) -> Iterator[None]:
    """The runtime that the examples' selector finds, whatever others left; gone afterwards."""
    accelerator = {"resourceName": "nvidia.com/gpu"}
    api.apply(runtime("nvidia", vendor="nvidia", priority=1000, accelerator=accelerator))
    yield
    api.delete(f"/apis/{API}/inferenceruntimes/nvidia")


def test_all_examples_are_taken_in_one_go_and_their_services_come_up(world: World, nvidia: None) -> None:
    api = world.api
    api.install(certificate_kinds())
    places = {folder: new_namespace(api) for folder in FOLDERS}
    for folder, namespace in places.items():
        assert applied(api, folder, namespace)
    for folder, namespace in places.items():
        if folder.name in SERVING:
            served = World(api, namespace)
            served.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
            served.await_phase("ScaledToZero")
            served.delete()
