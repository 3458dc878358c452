"""Four faults planted in one real cluster API under the real operator, and what one command says of each.

The fifth, a full queue, is known to a running gateway only: libs/noctaya-cli has tests with all five.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from noctaya_apiserver.client import Object
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.world import World, runtime
from noctaya_docs.stage import Stage
from noctaya_docs.table import INSTALL
from noctaya_docs.ways import api

pytestmark = pytest.mark.timeout(300)
"""The first test also waits for the API server and for four faults to be seen."""
NAMESPACE = "models"
NO_ACCELERATOR = {"accelerators": 0}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("stage")) as stage:
        stage.prove(INSTALL, api())
        stage.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        stage.api.apply(runtime())
        world = World(stage.api, NAMESPACE)
        plant_storage_class(world)
        plant_image(world)
        plant_certificate(world)
        plant_keda(stage)
        yield stage


def plant_storage_class(world: World) -> None:
    world.create("stored", resources=NO_ACCELERATOR, cache={"storageClassName": "fast", "size": "1Gi"})


def plant_image(world: World) -> None:
    world.api.apply(runtime("broken", image="example.com/missing:1"))
    world.create("imaged", resources=NO_ACCELERATOR, runtime={"name": "broken"}, cache={"strategy": "None"})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "imaged")
    scale(world.api, namespace=NAMESPACE, deployment="imaged", replicas=1)
    world.await_condition("Degraded", "True", "ImagePullFailed", "imaged")


def plant_certificate(world: World) -> None:
    authority = trustme.CA()
    ended = datetime.now(UTC) - timedelta(days=3)
    certificate = authority.issue_cert("secured-scaler.models.svc", not_after=ended)
    data = {
        "tls.crt": certificate.cert_chain_pems[0].bytes(),
        "tls.key": certificate.private_key_pem.bytes(),
        "ca.crt": authority.cert_pem.bytes(),
    }
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    metadata = {"name": "scaler-tls", "namespace": NAMESPACE}
    world.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})
    tls = {"serverSecretName": "scaler-tls", "authenticationRef": {"name": "keda-mtls"}}
    world.create(
        "secured",
        resources=NO_ACCELERATOR,
        cache={"strategy": "None"},
        scaling={"externalScaler": {"tls": tls}},
    )
    world.await_phase("ScaledToZero", "secured")


def plant_keda(stage: Stage) -> None:
    labels = {"app.kubernetes.io/name": "keda-operator"}
    container = {"name": "keda-operator", "image": "example.com/slow:1"}
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "keda-operator", "namespace": "keda", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    stage.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}})
    stage.api.create(deployment)


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        (
            "✖ storage models/stored asks for StorageClass fast, which doesn't exist",
            "→ Set spec.cache.storageClassName to one that does: standard.",
        ),
        ("✖ services models/imaged: ImagePullFailed: ", "→ Correct `container.image` of the runtime"),
        (
            "✖ certificates models/scaler-tls, the certificate of secured's scaler, expired 3 days ago",
            "→ Renew it; it is reloaded by itself.",
        ),
        (
            "✖ keda keda/keda-operator has no ready Pod, so nothing scales from zero",
            "→ kubectl -n keda describe deployment keda-operator",
        ),
    ],
    ids=["wrong StorageClass", "bad image", "expired certificate", "KEDA down"],
)
def test_doctor_names_the_cause_and_the_remedy(stage: Stage, cause: str, remedy: str) -> None:
    page = " ".join(stage.prove("noctaya doctor", api(codes=(1,))).output.split())
    assert cause in page
    assert remedy in page[page.index(cause) :]


def test_explain_says_what_is_wrong_and_what_to_do(stage: Stage) -> None:
    said = stage.prove(f"noctaya explain imaged -n {NAMESPACE}", api()).output
    assert "models/imaged: Degraded" in said
    assert "✖ ImagePullFailed" in said
    assert "→ Correct `container.image` of the runtime" in said
