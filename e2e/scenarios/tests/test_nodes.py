"""E4 and node drains: planned maintenance disturbs nobody."""

from __future__ import annotations

import pytest
from noctaya_apiserver import Refused
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic

pytestmark = [pytest.mark.last, pytest.mark.xdist_group("last")]


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


def test_e4_one_of_two_gateways_may_be_evicted_not_both(lab: Lab, scene: Scene) -> None:
    client = scene.deploy()
    first, second = scene.ready_pods("gateway")
    with faults.cordoned(lab.access, *lab.cluster.nodes):
        assert evict(scene, first) == 201
        assert evict(scene, second) == 429, "the last gateway was evicted"
        scene.until(lambda: scene.ready_pods("gateway") == [second], within=60, what="one gateway is left")
        assert client.get("/healthz").status == 200
    scene.until(lambda: len(scene.ready_pods("gateway")) == 2, within=90, what="two gateways again")


def test_a_node_drain_fails_no_request_and_cuts_no_stream(lab: Lab, scene: Scene) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="200ms"),
        scaling={"drainTimeout": "60s", "activationTimeout": "3m"},
    )
    streams = [client.stream(tokens=150) for _ in range(6)]
    for stream in streams:
        stream.await_tokens(within=WAKE_SECONDS)
    (backend,) = scene.pods("backend")
    node = backend["spec"]["nodeName"]
    with Traffic(client, clients=2, tokens=2) as traffic:
        with faults.drained(lab.access, node):
            ended = [stream.result(120) for stream in streams]
            scene.until(
                lambda: [pod["spec"]["nodeName"] != node for pod in scene.pods("backend")] == [True],
                within=WAKE_SECONDS,
                what="the backend runs on the other node",
            )
            assert client.ask().status == 200
        traffic.stop()
        traffic.assert_nothing_failed(at_least=10)
    assert all(seen.whole and seen.tokens == 150 for seen in ended), ended
