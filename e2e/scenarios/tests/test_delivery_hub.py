"""Issue 6 on a cluster: a model of a hub is downloaded before it is served, once, verified and visible."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from noctaya_scenarios import manifests
from noctaya_scenarios.delivery import (
    DELIVERY_SECONDS,
    MIB,
    SHARED,
    STAYS,
    await_bytes,
    await_paused,
    await_told,
    everything_told,
    give_up,
    hashes_of,
    model,
    model_path,
    nothing_runs,
    paused_at_zero,
    prewarm_of,
    served_files,
)
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.model_places import ModelPlaces, model_places
from noctaya_scenarios.scene import READY_SECONDS, Scene
from noctaya_scenarios.waiting import during

SIZE = 24 * MIB + 5
FILES = model(size=SIZE, seed=4)


@pytest.fixture
def places(lab: Lab, scene: Scene) -> Iterator[ModelPlaces]:
    lab.load_delivery_images()
    with model_places(lab.api, scene.namespace, reach=lab.reach) as places:
        yield places


def make(scene: Scene, places: ModelPlaces, uri: str, **changes: object) -> None:
    source = {"uri": uri, "endpoint": places.endpoint}
    spec = manifests.service_spec(scene.runtime(), model={"source": source}, cache=SHARED, scaling=STAYS)
    scene.create(**manifests.merged(spec, dict(changes)))


def test_o6_a_model_comes_ahead_of_its_accelerator_and_is_then_served_read_only(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    sha = places.repository("org/model", FILES)
    places.fault(route="cdn", effect={"bytes_per_second": MIB / 8})
    make(scene, places, "hf://org/model", scaling={"activationTimeout": "20s"})
    await_paused(scene)
    scene.await_phase("Prewarming", within=READY_SECONDS)
    assert await_bytes(scene)["bytesTotal"] == SIZE + 2
    scene.until(
        lambda: len(scene.ready_pods("gateway")) == scene.gateways, within=READY_SECONDS, what="the gateways"
    )

    def refused() -> bool:
        answer = scene.client().ask(within=60)
        return (answer.status, answer.code) == (503, "prewarming") and int(answer.headers["retry-after"]) > 20

    scene.until(refused, within=90, what="a refusal that says why and when to come again")
    during(lambda: nothing_runs(scene), seconds=2, what="nothing holds an accelerator")
    places.heal()
    scene.await_idle(within=DELIVERY_SECONDS)
    assert not paused_at_zero(scene)
    assert prewarm_of(scene)["state"] == "Complete"
    assert scene.status()["model"]["revision"] == sha
    # The kubelet tells gateways that the download is over; until then they go on refusing.
    scene.until(lambda: scene.client().ask().status == 200, within=90, what="an answer of the model")
    assert served_files(lab.access, scene) == hashes_of(FILES)
    (pod,) = scene.pods("backend", leaving=False)
    (serving,) = pod["spec"]["containers"]
    (mount,) = [each for each in serving["volumeMounts"] if model_path(scene).startswith(each["mountPath"])]
    assert mount["readOnly"] is True
    assert {each["name"]: each.get("value") for each in serving["env"]}["HF_HUB_OFFLINE"] == "1"
    large = [one for one in places.requests("cdn") if one["method"] == "GET"]
    assert sum(one["sent"] for one in large) == SIZE, "every byte once"


def test_m3_a_gated_model_fails_with_its_reason_and_comes_once_the_token_is_right(
    scene: Scene, places: ModelPlaces
) -> None:
    places.repository("org/gated", FILES, gated=True, tokens=["right-token-of-the-test"])
    scene.secret("hub-token", token="wrong-token-of-the-test")
    make(scene, places, "hf://org/gated", model={"source": {"secretRef": {"name": "hub-token"}}})
    await_told(scene, reason="NotAuthorised")
    assert "wrong-token" not in everything_told(scene)
    give_up(scene)
    scene.await_condition("Ready", "False", "PrewarmFailed", within=READY_SECONDS)
    assert prewarm_of(scene)["reason"] == "NotAuthorised"
    assert nothing_runs(scene)
    scene.secret("hub-token", token="right-token-of-the-test")
    scene.await_idle(within=DELIVERY_SECONDS)
    assert scene.client().ask().status == 200
    assert "right-token" not in everything_told(scene)


def test_m1_m2_whatever_a_network_does_only_the_right_bytes_become_a_model(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    places.repository("org/model", FILES)
    for effect in (
        {"cut_after": 3 * MIB},
        {"status": 503, "headers": {"Retry-After": "1"}},
        {"status": 429, "headers": {"Retry-After": "1"}},
        {"cut_after": 2 * MIB, "reset": True},
        {"keep_whole": True, "flip_at": SIZE - 1000},
    ):
        # Each hits the first call that the ones before it let through.
        places.fault(route="cdn", method="GET", calls=[1], effect=effect)
    places.fault(route="cdn", effect={"flip_at": SIZE - 1000})
    make(scene, places, "hf://org/model")
    told = await_told(scene, reason="IntegrityFault")
    assert "model.safetensors" in told["message"]
    assert nothing_runs(scene)
    places.heal()
    scene.await_idle(within=DELIVERY_SECONDS)
    assert scene.client().ask().status == 200
    assert served_files(lab.access, scene) == hashes_of(FILES)


def test_o6_a_model_that_serves_goes_on_while_its_successor_fails_to_come_and_is_replaced_by_it(
    lab: Lab, scene: Scene, places: ModelPlaces
) -> None:
    places.repository("org/model", FILES)
    make(scene, places, "hf://org/model", cache={"replace": True}, scaling={"min": 1})
    scene.await_phase("Ready", within=DELIVERY_SECONDS)
    former = model_path(scene)
    scene.change(model={"source": {"uri": "hf://org/next"}})
    await_told(scene, reason="NotAuthorised")  # what the hub says of names it does not know
    give_up(scene)
    scene.await_condition("Degraded", "True", "PrewarmFailed", within=READY_SECONDS)
    assert scene.status()["phase"] == "Ready"
    assert scene.client().ask().status == 200
    assert served_files(lab.access, scene) == hashes_of(FILES)
    successor = model(size=MIB + 1, seed=5)
    places.repository("org/next", successor)
    scene.until(
        lambda: model_path(scene) != former and serves(scene, model_path(scene)),
        within=DELIVERY_SECONDS,
        what="a replica with the successor, and none without it",
    )
    assert served_files(lab.access, scene) == hashes_of(successor)
    assert scene.client().ask().status == 200


def serves(scene: Scene, path: str) -> bool:
    pods = scene.pods("backend")
    given = [pod["spec"]["containers"][0]["args"][0] for pod in pods]
    return given == [path] and len(scene.ready_pods("backend")) == 1
