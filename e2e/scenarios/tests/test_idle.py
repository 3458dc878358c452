"""E1, E2, G3: a service that nobody asked anything yet."""

from __future__ import annotations

import pytest
from noctaya_scenarios.chat import Client
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.waiting import during

pytestmark = pytest.mark.any_gateways


def test_e1_e2_g3_a_new_service_is_whole_and_idle_and_looking_at_it_never_wakes_it(scene: Scene) -> None:
    client = scene.deploy()
    assert_idle_and_never_scaled(scene, client)
    assert_objects_of_the_contract(scene)
    assert_keda_listens_to_the_scaler(scene)
    assert_looking_never_wakes(scene, client)


def assert_idle_and_never_scaled(scene: Scene, client: Client) -> None:
    """E1."""
    assert scene.replicas() == 0
    assert not scene.pods("backend")
    assert len(scene.ready_pods("gateway")) == scene.gateways
    told = [event["reason"] for event in scene.events() if event["regarding"]["kind"] == "Deployment"]
    assert told == [], "the backend's Deployment was scaled though nobody asked for it"
    assert client.get("/healthz").status == 200
    assert scene.demand() == 0


def assert_objects_of_the_contract(scene: Scene) -> None:
    """E1."""
    expected = {
        "deployments/chat",
        "deployments/chat-gateway",
        "services/chat",
        "services/chat-backend",
        "services/chat-pods",
        "services/chat-scaler",
        "scaledobjects/chat",
    }
    if scene.gateways > 1:
        expected |= {
            "deployments/chat-scaler",
            "secrets/chat-demand-auth",
            "poddisruptionbudgets/chat-gateway",
        }
        scaler = scene.await_object("apps/v1/deployments", "chat-scaler")
        assert scaler["status"]["readyReplicas"] == 1
    assert set(scene.objects(of="chat")) == expected


def assert_keda_listens_to_the_scaler(scene: Scene) -> None:
    """E2."""
    (trigger,) = scene.scaled_object()["spec"]["triggers"]
    assert trigger["type"] == "external-push"
    assert trigger["metadata"]["scalerAddress"] == f"chat-scaler.{scene.namespace}.svc:9090"
    part = "scaler" if scene.gateways > 1 else "gateway"
    service = scene.await_object("v1/services", "chat-scaler")
    assert service["spec"]["selector"][f"serving.noctaya.io/{part}"] == "chat"
    scene.until(lambda: scene.streams() == 1, within=60, what="KEDA listens once")
    if scene.gateways > 1:
        scene.until(
            lambda: scene.scaler_sample("noctaya_scaler_gateway_members") == scene.gateways,
            within=60,
            what="every gateway reports",
        )
        scene.until(
            lambda: scene.scaler_sample("noctaya_scaler_demand_unknown") == 0,
            within=60,
            what="the demand is known",
        )


def assert_looking_never_wakes(scene: Scene, client: Client) -> None:
    """G3."""
    listed = client.get("/v1/models")
    assert listed.status == 200
    (model,) = listed.json()["data"]
    assert (model["id"], model["noctaya"]["state"]) == ("chat", "cold")
    favicon = client.get("/favicon.ico")
    assert (favicon.status, favicon.code) == (503, "cold_start")
    during(
        lambda: scene.demand() == 0 and scene.replicas() == 0,
        seconds=4,
        what="no demand after GET requests",
    )
