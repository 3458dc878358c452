"""What only one gateway can show: it is the scaler itself, its death takes the demand along."""

from __future__ import annotations

import pytest
from noctaya_scenarios.chat import Client
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.waiting import during

pytestmark = pytest.mark.one_gateway


def answers(client: Client) -> bool:
    """Whether a request succeeds; nodes need a moment to learn of the new gateway."""
    try:
        return client.ask().status == 200
    except OSError:
        return False


@pytest.mark.long
def test_a_gateway_that_is_killed_under_load_comes_back_and_the_model_stays(scene: Scene) -> None:
    client = scene.deploy(scaling={"scaleDownStabilization": "15s"})
    assert client.ask().status == 200
    (gateway,) = scene.ready_pods("gateway")
    scene.delete_pod(gateway, grace=0)
    scene.until(
        lambda: scene.ready_pods("gateway") not in ([], [gateway]), within=120, what="another gateway"
    )
    scene.until(lambda: answers(client), within=120, what="the endpoint answers again")
    with Traffic(client, clients=2) as traffic:
        during(lambda: scene.replicas() == 1, seconds=30, what="the model stays up while it is used")
        traffic.stop(after=20)
        traffic.assert_nothing_failed(at_least=20)
    scene.until(lambda: scene.streams() == 1, within=120, what="KEDA listens again")
    scene.await_zero()
