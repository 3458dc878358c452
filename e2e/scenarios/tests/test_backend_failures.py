"""Backends that vanish, leave, can't be pulled."""

from __future__ import annotations

import pytest
from noctaya_apiserver.world import condition_of
from noctaya_scenarios.manifests import MISSING_IMAGE
from noctaya_scenarios.scene import WAKE_SECONDS, Scene

any_gateways = pytest.mark.any_gateways

SLOW = {"STUB_TOKEN_DELAY": "150ms"}


@pytest.mark.long
@any_gateways
def test_e9_a_deleted_backend_pod_is_replaced_and_the_next_requests_succeed(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(drain=False))
    assert client.ask().status == 200
    (old,) = scene.ready_pods("backend")
    scene.delete_pod(old)
    assert client.ask().status == 200
    (new,) = scene.until(
        lambda: scene.ready_pods("backend"), within=WAKE_SECONDS, what="one new Pod that is ready"
    )
    assert new != old
    answer = client.ask()
    assert (answer.status, answer.pod) == (200, new)
    scene.await_zero()
    assert scene.demand() == 0
    scene.until(
        lambda: condition_of(scene.scaled_object()["status"], "Active")[0] == "False",
        within=30,
        what="KEDA sees the service inactive",
    )


@any_gateways
def test_e10_a_backend_pod_that_is_deleted_finishes_its_streams(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(**SLOW), scaling={"drainTimeout": "30s"})
    stream = client.stream(tokens=80)
    stream.await_tokens(10, within=WAKE_SECONDS)
    (pod,) = scene.ready_pods("backend")
    scene.delete_pod(pod)
    seen = stream.result(120)
    assert seen.whole, seen
    assert seen.tokens == 80


def test_g2_a_stream_whose_backend_dies_ends_with_an_error_event(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(drain=False, **SLOW))
    stream = client.stream(tokens=400)
    stream.await_tokens(5, within=WAKE_SECONDS)
    (pod,) = scene.ready_pods("backend")
    scene.delete_pod(pod)
    seen = stream.result(120)
    assert (seen.status, seen.done, seen.failure) == (200, True, ""), seen
    assert [error["code"] for error in seen.errors] == ["backend_interrupted"]
    assert seen.tokens < 400


@any_gateways
@pytest.mark.long
def test_e14_a_missing_image_is_reported_and_the_held_stream_survives_its_repair(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(image=MISSING_IMAGE), scaling={"activationTimeout": "4m"})
    stream = client.stream(tokens=5)
    scene.await_condition("Degraded", "True", "ImagePullFailed")
    scene.await_event("ImagePullFailed")
    scene.runtime()
    scene.await_condition("Degraded", "False", "Healthy")
    scene.await_condition("Ready", "True", "Available")
    seen = stream.result(WAKE_SECONDS)
    assert seen.whole, seen
    scene.await_event("BackendRecovered")


@pytest.mark.long
def test_g9_an_activation_that_can_not_succeed_is_told_before_its_timeout(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(image=MISSING_IMAGE), scaling={"activationTimeout": "10m"})
    streams = [client.stream()]

    def every_gateway_holds_one() -> bool:
        if all(scene.gateway_sample(pod, "pending") for pod in scene.ready_pods("gateway")):
            return True
        streams.append(client.stream())
        return False

    # A gateway pauses after a failure of its own; which of them answers next is chance.
    scene.until(every_gateway_holds_one, within=60, what="a held request at every gateway")
    for seen in [stream.result(180) for stream in streams]:
        assert [error["code"] for error in seen.errors] == ["activation_failed"], seen
        assert "pulled" in seen.errors[0]["message"] or "image" in seen.errors[0]["message"], seen.errors
    refused = client.ask()
    assert (refused.status, refused.code) == (503, "activation_failed")
    assert refused.seconds < 10
    assert 1 <= int(refused.headers["retry-after"]) <= 60
