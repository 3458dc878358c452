"""E13: API keys and their rotation."""

from __future__ import annotations

import pytest
from noctaya_scenarios.chat import Client
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.traffic import Traffic

pytestmark = pytest.mark.any_gateways

ROTATION_SECONDS = 120
"""E13: within two minutes."""
ENOUGH = 20
"""New connections after which each of two gateways was asked, but for once in half a million times."""


def everywhere(client: Client) -> set[int]:
    """Statuses of the same question to every gateway."""
    return {client.get("/v1/models").status for _ in range(ENOUGH)}


@pytest.mark.long
def test_e13_keys_guard_a_service_through_a_cold_start_and_rotate_without_a_restart(scene: Scene) -> None:
    scene.secret("keys", keys="first-key\n")
    client = scene.deploy(endpoint={"authentication": {"secretRef": {"name": "keys", "key": "keys"}}})
    uid = scene.api.get(scene.path())["metadata"]["uid"]
    gateways = scene.ready_pods("gateway")
    assert client.get("/healthz").status == 200
    for stranger in (client, client.with_key("wrong")):
        refused = stranger.ask()
        assert (refused.status, refused.code) == (401, "invalid_api_key")
    assert scene.demand() == 0, "a request without a key caused demand"
    first, second = client.with_key("first-key"), client.with_key("second-key")
    assert first.ask().status == 200
    with Traffic(first, clients=2) as traffic:
        scene.secret("keys", keys="first-key\nsecond-key\n")
        scene.until(
            lambda: everywhere(second) == {200},
            within=ROTATION_SECONDS,
            what="the second key is taken by every gateway",
        )
        traffic.stop(after=10)
        traffic.assert_nothing_failed(at_least=10)
    with Traffic(second, clients=2) as traffic:
        scene.secret("keys", keys="second-key\n")
        scene.until(
            lambda: everywhere(first) == {401},
            within=ROTATION_SECONDS,
            what="the first key is refused by every gateway",
        )
        traffic.stop(after=10)
        traffic.assert_nothing_failed(at_least=10)
    assert scene.api.get(scene.path())["metadata"]["uid"] == uid
    assert scene.ready_pods("gateway") == gateways
