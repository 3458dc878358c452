"""Issue 6 on a cluster: models from an OCI registry, pulled by oras, verified by the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from noctaya_scenarios import manifests
from noctaya_scenarios.delivery import (
    DELIVERY_SECONDS,
    MIB,
    SHARED,
    STAYS,
    await_bytes,
    await_told,
    everything_told,
    hashes_of,
    model,
    model_path,
    nothing_runs,
    prewarm_of,
    served_files,
)
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.model_places import ModelPlaces, model_places, pull_secret
from noctaya_scenarios.scene import Scene

SIZE = 12 * MIB + 3
FILES = model(size=SIZE, seed=6)
USER, PASSWORD = "puller", "password-of-the-test"


@pytest.fixture
def places(lab: Lab, scene: Scene) -> Iterator[ModelPlaces]:
    lab.load_delivery_images()
    with model_places(lab.api, scene.namespace, reach=lab.reach) as places:
        yield places


def dockerconfig(scene: Scene, content: str, name: str = "pull") -> None:
    scene.api.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": name, "namespace": scene.namespace},
            "stringData": {".dockerconfigjson": content},
        }
    )


def source(places: ModelPlaces, reference: str, **more: object) -> dict[str, object]:
    return {"uri": f"oci://{places.host}/{reference}", "endpoint": places.endpoint, **more}


def make(
    scene: Scene, given: dict[str, object], name: str = "chat", *, cache: dict[str, object] | None = None
) -> None:
    scene.create(
        name,
        **manifests.service_spec(
            scene.runtime(), model={"source": given}, cache=cache or SHARED, scaling=STAYS
        ),
    )


def test_m5_a_private_registry_wants_a_secret_that_works_and_then_its_model_is_served(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    digest = places.artifact("team/model", FILES, users={USER: PASSWORD})
    dockerconfig(scene, json.dumps({"auths": {places.host: {}}, "credsStore": "desktop"}))
    make(scene, source(places, f"team/model@{digest}", secretRef={"name": "pull"}))
    await_told(scene, message="docker-credential-desktop")
    dockerconfig(scene, pull_secret(places.host, user=USER, password=PASSWORD))
    scene.await_idle(within=DELIVERY_SECONDS)
    assert prewarm_of(scene)["state"] == "Complete"
    assert scene.client().ask().status == 200
    assert served_files(lab.access, scene) == hashes_of(FILES)
    told = everything_told(scene)
    assert PASSWORD not in told
    assert json.loads(pull_secret("x", user=USER, password=PASSWORD))["auths"]["x"]["auth"] not in told


def test_m5_m6_a_pull_shows_how_far_it_is_and_a_registry_that_lies_gives_no_model(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    digest = places.artifact("team/model", FILES)
    blob = f"sha256:{hashes_of(FILES)['model.safetensors']}"
    places.fault(route="oci-blob", path=blob, effect={"flip_at": 5 * MIB, "bytes_per_second": MIB})
    make(scene, source(places, f"team/model@{digest}"))
    assert await_bytes(scene)["bytesTotal"] == SIZE + 2
    await_told(scene, message="mismatched digest")
    assert nothing_runs(scene)
    places.heal()
    scene.await_idle(within=DELIVERY_SECONDS)
    assert scene.client().ask().status == 200
    assert served_files(lab.access, scene) == hashes_of(FILES)


def test_a_tag_is_resolved_once_and_who_names_its_digest_shares_the_same_files(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    digest = places.artifact("team/model", FILES, tag="v1")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": scene.namespace},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "noctaya-shared",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    scene.api.create(claim)
    shared: dict[str, object] = {"strategy": "SharedPVC", "claimName": "models"}
    make(scene, source(places, "team/model:v1", allowTags=True), cache=shared)
    scene.await_idle(within=DELIVERY_SECONDS)
    assert scene.status()["model"]["digest"] == digest
    moved = places.artifact("team/model", {"config.json": "[]"}, tag="v1")
    assert moved != digest
    make(scene, source(places, f"team/model@{digest}"), "other", cache=shared)
    scene.await_idle("other", within=DELIVERY_SECONDS)
    assert model_path(scene) == model_path(scene, "other")
    for name in ("chat", "other"):
        assert scene.client(name).ask().status == 200
        assert served_files(lab.access, scene, name) == hashes_of(FILES)
    assert scene.status()["model"]["digest"] == digest
