"""One gateway becomes two and one again under a service that serves."""

from __future__ import annotations

import pytest
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.last

CHANGE_SECONDS = 240


def test_l4_the_number_of_gateways_changes_under_load_and_nothing_fails(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_TOKEN_DELAY="200ms"), scaling={"drainTimeout": "40s"})
    with turns.alone():
        scene.await_idle()
        stream = client.stream(tokens=150)
        stream.await_tokens(within=WAKE_SECONDS)
        uid = scene.await_object("apps/v1/deployments", "chat-gateway")["metadata"]["uid"]
        other = 3 - lab.gateways
        with Traffic(client, clients=2, tokens=2) as traffic:
            try:
                for count in (other, lab.gateways):
                    lab.release.install(gateways=count)
                    scene.gateways = count
                    scene.until(
                        lambda: settled(scene), within=CHANGE_SECONDS, what=f"{count} gateways and no more"
                    )
            finally:
                lab.release.ensure(gateways=lab.gateways)
            traffic.stop(after=100)
            traffic.assert_nothing_failed(at_least=100)
        assert stream.result(120).whole
    assert scene.await_object("apps/v1/deployments", "chat-gateway")["metadata"]["uid"] == uid
    scene.await_zero()


def settled(scene: Scene) -> bool:
    """Just the objects that belong to the number of gateways, and KEDA at the right place."""
    several = scene.gateways > 1
    objects = scene.objects(of="chat")
    extra = {"deployments/chat-scaler", "secrets/chat-demand-auth", "poddisruptionbudgets/chat-gateway"}
    there = extra & set(objects)
    return (
        there == (extra if several else set())
        and len(scene.ready_pods("gateway")) == scene.gateways == len(scene.pods("gateway"))
        and scene.streams() == 1
    )
