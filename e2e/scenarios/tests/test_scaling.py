"""1 to N and back: replicas follow demand, and requests go where least is in flight."""

from __future__ import annotations

import pytest
from noctaya_scenarios.scene import WAKE_SECONDS, Scene

pytestmark = pytest.mark.any_gateways

SCALE_OUT_SECONDS = 120


def known(scene: Scene) -> list[float]:
    """How many ready replicas each gateway knows."""
    return [scene.gateway_sample(pod, "backends", state="ready") for pod in scene.ready_pods("gateway")]


@pytest.mark.long
def test_e7_concurrent_streams_scale_out_and_all_complete(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_TOKEN_DELAY="1s"), scaling={"max": 2, "target": 1})
    streams = [client.stream(tokens=120) for _ in range(4)]
    scene.until(
        lambda: len(scene.ready_pods("backend")) == 2, within=SCALE_OUT_SECONDS, what="two replicas ready"
    )
    assert all(stream.running for stream in streams), "streams ended before the second replica came"
    scene.hurry(*scene.ready_pods("backend"))
    ended = [stream.result(120) for stream in streams]
    assert all(seen.whole and seen.tokens == 120 for seen in ended), ended
    scene.await_zero()


@pytest.mark.long
def test_g7_requests_go_to_the_replica_with_least_in_flight(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_TOKEN_DELAY="250ms"), scaling={"max": 3, "target": 2})
    first = [client.stream(tokens=300) for _ in range(6)]
    for stream in first:
        stream.await_tokens(within=WAKE_SECONDS)
    (busy,) = scene.ready_pods("backend")
    scene.until(
        lambda: len(scene.ready_pods("backend")) == 3, within=SCALE_OUT_SECONDS, what="three replicas ready"
    )
    fresh = [pod for pod in scene.ready_pods("backend") if pod != busy]
    scene.until(lambda: known(scene) == [3.0] * scene.gateways, within=60, what="gateways know all replicas")
    more = [client.stream(tokens=8) for _ in range(8)]
    ended = [stream.result(120) for stream in more]
    assert all(seen.whole for seen in ended), ended
    shares = [int(scene.stub(pod)["completed"]) for pod in fresh]
    if scene.gateways == 1:
        assert sorted(shares) == [4, 4], f"the busy replica {busy} got more: {shares}"
    else:
        assert min(shares) >= 1, f"a replica without requests got none: {shares}"
    assert all(stream.running for stream in first), "the busy replica was not busy for long enough"
    scene.hurry(busy)
    assert all(stream.result(120).whole for stream in first)
