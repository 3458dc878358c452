"""A service of the v0.4 alpha at zero is taken over by this version, then wakes.

The alpha's images can't be had; its objects are those of its contract, with this version's gateway, which
reads the same environment, in their place. What the alpha's other states come to is tested against an API
server (e2e/apiserver).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from noctaya_apiserver.alpha import ENGINE, GATEWAY, MANAGER, alpha_objects, alpha_runtime, alpha_service
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import ACCELERATOR, STUB_IMAGE
from noctaya_scenarios.operators import both_operators, no_operators
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.last

Object = dict[str, Any]
OURS = {
    GATEWAY: "ghcr.io/noctaya/noctaya-gateway:0.5.0",
    ENGINE: STUB_IMAGE,
    "nvidia.com/gpu": ACCELERATOR,
    "alpha-engine": "{runtime}",
    "--mode=aggregator": "",
    "sleep 120": "sleep 2",
    '"terminationGracePeriodSeconds": 130': '"terminationGracePeriodSeconds": 60',
}
"""Names and times of the alpha by those of a test: draining takes two seconds instead of two minutes."""
SCALER = "ghcr.io/noctaya/noctaya-aggregate-scaler:0.5.0"


def adapted(obj: Object, runtime: str) -> Object:
    """With images that are there and an accelerator that this cluster has."""
    text = json.dumps(obj)
    for theirs, ours in OURS.items():
        text = text.replace(theirs, ours.replace("{runtime}", runtime))
    changed: Object = json.loads(text)
    if changed["metadata"]["name"] == "chat-scaler" and changed["kind"] == "Deployment":
        (container,) = changed["spec"]["template"]["spec"]["containers"]
        container["image"] = SCALER
        del container["args"]
    return changed


def left_by_the_alpha(scene: Scene, runtime: str) -> dict[str, str]:
    """A service at zero with everything the alpha made but its download; uids by path."""
    scene.api.apply(adapted(alpha_runtime(), runtime))
    service = alpha_service(scene.namespace)
    service["spec"]["runtime"]["name"] = runtime
    service["spec"]["cache"] = {"size": "30Gi"}
    service["spec"]["scaling"] = {"scaleDownStabilization": "5s", "drainTimeout": "2s"}
    made = scene.api.create(service)
    for obj in alpha_objects(made):
        if obj["kind"] == "Job":
            continue
        ours = adapted(obj, runtime)
        if ours["kind"] == "ScaledObject":
            ours["spec"]["cooldownPeriod"] = 5
        if ours["kind"] in {"Secret", "PersistentVolumeClaim"}:
            scene.api.create(ours, fieldManager="manager")
        else:
            scene.api.apply(ours, manager=MANAGER)
    scene.until(lambda: len(scene.ready_pods("gateway")) == 2, within=180, what="the alpha's gateways")
    scene.until(lambda: scene.streams() == 1, within=180, what="KEDA listens")
    scene.until(
        lambda: scene.replicas() == 0 and not scene.pods("backend"), within=180, what="the alpha is at zero"
    )
    return {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}


def test_e16_a_service_of_the_alpha_at_zero_is_taken_over_and_wakes(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    runtime = scene.runtime("alpha")
    with turns.alone():
        with no_operators(lab):
            before = left_by_the_alpha(scene, runtime)
        both_operators(lab)
    scene.await_idle()
    after = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
    assert {path: after.get(path) for path in before} == before
    assert not any(
        event["reason"] == "ScalingReplicaSet" and "up" in event["note"] for event in _since(scene)
    )
    client = scene.client()
    seen = client.stream(tokens=5).result(WAKE_SECONDS)
    assert seen.whole, seen
    scene.await_zero()


def _since(scene: Scene) -> list[Object]:
    """Events of the backend's Deployment since it is at zero: the alpha's own start is not among them."""
    first = [event for event in scene.events() if event["regarding"]["kind"] == "Deployment"]
    down = [index for index, event in enumerate(first) if "down" in (event.get("note") or "")]
    return first[down[-1] + 1 :] if down else first
