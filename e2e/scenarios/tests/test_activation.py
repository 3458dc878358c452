"""0 to 1 and back: what a client sees of it, what the service tells of it."""

from __future__ import annotations

import pytest
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.scene import WAKE_SECONDS, Scene

any_gateways = pytest.mark.any_gateways

SECONDS = len("2026-11-30T11:01:29")
"""Kubernetes tells most of the times in whole seconds."""


@pytest.mark.long
@any_gateways
def test_e8_a_held_stream_gets_its_tokens_and_the_service_goes_back_to_zero(scene: Scene) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_STARTUP_DELAY="3s"), scaling={"scaleDownStabilization": "15s"}
    )
    stream = client.stream(tokens=20)
    stream.await_heartbeats(2)
    scene.until(lambda: scene.demand() == 1, within=30, what="the demand of a held request")
    seen = stream.result(WAKE_SECONDS)
    assert seen.whole, seen
    assert (seen.tokens, seen.body) == (20, "")
    assert seen.headers["content-type"] == "text/event-stream"
    assert seen.headers["x-noctaya-cold-start"] == "true"
    scene.await_condition("Ready", "True", "Available")
    again = client.ask()
    assert again.status == 200
    assert again.pod in scene.ready_pods("backend")
    assert "x-noctaya-cold-start" not in again.headers
    scene.await_zero()
    assert scene.demand() == 0


@any_gateways
def test_t1_a_cold_request_that_does_not_stream_gets_the_backends_answer_and_leaves_a_timeline(
    scene: Scene,
) -> None:
    client = scene.deploy(scaling={"scaleDownStabilization": "60s"})
    answer = client.ask(tokens=3)
    assert answer.status == 200, answer
    assert answer.json()["choices"][0]["message"]["content"] == "token0 token1 token2 "
    assert answer.headers["x-noctaya-cold-start"] == "true"
    waited = float(answer.headers["x-noctaya-wait-seconds"])
    assert 0 < waited <= answer.seconds
    status = scene.await_status(lambda found: "firstByte" in (found.get("lastActivation") or {}))
    timeline = status["lastActivation"]
    assert (timeline["outcome"], timeline["id"]) == ("Succeeded", answer.headers["x-noctaya-activation-id"])
    steps = ("requested", "replicasWritten", "scheduled", "started", "ready", "firstByte")
    moments = [timeline[step][:SECONDS] for step in steps]
    assert moments == sorted(moments)
    assert timeline["pod"] in scene.ready_pods("backend")
    scene.await_event("Activated")


@pytest.mark.long
@any_gateways
def test_demand_outlives_the_client_that_caused_it_but_not_for_ever(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_STARTUP_DELAY="4s"))
    stream = client.stream()
    stream.await_heartbeats()
    stream.leave()
    scene.until(lambda: scene.ready_pods("backend"), within=WAKE_SECONDS, what="the model comes up")
    (pod,) = scene.ready_pods("backend")
    assert scene.stub(pod)["completed"] == 0, "the request of a client that left reached the backend"
    scene.await_zero()


@any_gateways
def test_many_cold_requests_share_one_activation(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_STARTUP_DELAY="3s"), scaling={"target": 100})
    streams = [client.stream(tokens=5) for _ in range(20)]
    ended = [stream.result(WAKE_SECONDS) for stream in streams]
    assert all(seen.whole for seen in ended), [seen for seen in ended if not seen.whole]
    assert len(scene.pods("backend")) == 1
    assert sum(scene.gateway_sample(pod, "activations_total") for pod in scene.ready_pods("gateway")) <= (
        scene.gateways
    )


def test_a_service_with_a_minimum_is_warm_without_being_asked(scene: Scene) -> None:
    scene.create("chat", **service_spec(scene.runtime(), scaling={"min": 1}))
    scene.await_phase("Ready")
    assert scene.replicas() == 1
    assert len(scene.ready_pods("backend")) == 1
    scene.await_reach()
    assert scene.client().ask().status == 200
