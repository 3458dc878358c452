"""O3: every way to delete a service ends, and takes everything along."""

from __future__ import annotations

import pytest
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.scene import WAKE_SECONDS, Scene

GONE_SECONDS = 240


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_o3_deleting_a_service_that_serves_ends_and_leaves_nothing(scene: Scene, propagation: str) -> None:
    client = scene.deploy(scaling={"drainTimeout": "5s"})
    assert client.ask().status == 200
    scene.delete(propagation=propagation)
    scene.await_gone("serving.noctaya.io/v1alpha1/llmservices", "chat", within=GONE_SECONDS)
    scene.until(lambda: not scene.objects(of="chat"), within=GONE_SECONDS, what="no object of it is left")
    scene.until(
        lambda: not any(scene.pods(part) for part in ("backend", "gateway", "scaler")),
        within=GONE_SECONDS,
        what="no Pod of it is left",
    )


def test_o3_deleting_a_namespace_with_services_in_every_state_ends(scene: Scene) -> None:
    client = scene.deploy("serving", scaling={"drainTimeout": "5s"})
    stream = client.stream(tokens=2000)
    stream.await_tokens(within=WAKE_SECONDS)
    scene.create("new", **service_spec(scene.runtime()))
    scene.create("broken", **service_spec("no-such-runtime"))
    scene.create("stuck", **service_spec(scene.runtime(), resources={"accelerators": 64}, scaling={"min": 1}))
    path = f"/api/v1/namespaces/{scene.namespace}"
    scene.api.delete(path)
    scene.until(lambda: scene.api.find(path) is None, within=GONE_SECONDS, what="the namespace is gone")
