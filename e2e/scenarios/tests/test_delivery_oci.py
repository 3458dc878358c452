"""Issue 6 on a cluster: models from a private OCI registry, pulled by oras, verified by the agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest
from noctaya_scenarios import manifests
from noctaya_scenarios.delivery import (
    MIB,
    SHARED,
    everything_told,
    pattern_sha256,
    prewarm_of,
    served_files,
)
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.model_places import ModelPlaces, pull_secret
from noctaya_scenarios.scene import Scene

SIZE = 12 * MIB + 3
FILES = {"config.json": "{}", "model.safetensors": {"size": SIZE, "seed": 6}}
HASHES = {
    "config.json": hashlib.sha256(b"{}").hexdigest(),
    "model.safetensors": pattern_sha256(size=SIZE, seed=6),
}
USER, PASSWORD = "puller", "password-of-the-test"
PULL_SECONDS = 180.0


@pytest.fixture
def places(lab: Lab, scene: Scene) -> Iterator[ModelPlaces]:
    lab.load_delivery_images()
    running = ModelPlaces(lab.api, scene.namespace, reach=lab.reach)
    yield running
    running.close()


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


def make(scene: Scene, places: ModelPlaces, reference: str, *, name: str = "chat", **source: object) -> None:
    given = {"uri": f"oci://{places.host}/{reference}", "endpoint": places.endpoint, **source}
    scene.create(name, **manifests.service_spec(scene.runtime(), model={"source": given}, cache=SHARED))


def test_m5_a_model_of_a_private_registry_is_staged_and_served(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    digest = places.artifact("team/model", FILES, users={USER: PASSWORD})
    dockerconfig(scene, pull_secret(places.host, user=USER, password=PASSWORD))
    make(scene, places, f"team/model@{digest}", secretRef={"name": "pull"})
    scene.await_idle(within=PULL_SECONDS)
    assert prewarm_of(scene)["state"] == "Complete"
    assert scene.client().ask().status == 200
    assert served_files(lab.access, scene) == HASHES
    told = everything_told(scene)
    assert PASSWORD not in told
    assert json.loads(pull_secret("x", user=USER, password=PASSWORD))["auths"]["x"]["auth"] not in told
