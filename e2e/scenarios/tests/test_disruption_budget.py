"""E4: who evicts gateways is stopped before the last one."""

from __future__ import annotations

from noctaya_apiserver import Refused
from noctaya_scenarios import faults
from noctaya_scenarios.scene import Scene


def evict(scene: Scene, pod: str) -> int:
    """The API's answer to an eviction."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": scene.namespace},
    }
    try:
        scene.api.request("POST", f"/api/v1/namespaces/{scene.namespace}/pods/{pod}/eviction", body)
    except Refused as error:
        return error.status
    return 201


def test_e4_one_of_two_gateways_may_be_evicted_not_both(scene: Scene) -> None:
    scene.deploy()
    first, second = scene.ready_pods("gateway")
    budget = f"/apis/policy/v1/namespaces/{scene.namespace}/poddisruptionbudgets/chat-gateway"
    scene.until(
        lambda: scene.api.get(budget)["status"].get("disruptionsAllowed") == 1,
        within=60,
        what="Kubernetes counts two gateways",
    )
    with faults.no_new_pods(scene.api, scene.namespace):
        assert evict(scene, first) == 201
        assert evict(scene, second) == 429, "the last gateway was evicted"
        scene.until(lambda: scene.ready_pods("gateway") == [second], within=60, what="one gateway is left")
        scene.await_reach()
    scene.until(lambda: len(scene.ready_pods("gateway")) == 2, within=180, what="two gateways again")
