"""Gateways and backends that leave while streams run: nothing is cut."""

from __future__ import annotations

import pytest
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic

any_gateways = pytest.mark.any_gateways

STREAMS = 50


def roll_gateways(scene: Scene) -> None:
    """Change what makes a rollout of the gateways; returns when only new ones are left."""
    before = set(scene.ready_pods("gateway"))
    scene.change(endpoint={"coldStart": {"heartbeatInterval": "700ms"}})
    scene.until(
        lambda: len(now := scene.ready_pods("gateway")) == scene.gateways and not before & set(now),
        within=240,
        what="new gateways",
    )


@any_gateways
@pytest.mark.long
def test_g8_a_gateway_rollout_cuts_neither_a_minute_long_stream_nor_a_short_request(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_TOKEN_DELAY="150ms"), scaling={"drainTimeout": "90s"})
    streams = [client.stream(tokens=400) for _ in range(2 * scene.gateways)]
    for stream in streams:
        stream.await_tokens(within=WAKE_SECONDS)
    with Traffic(client, clients=3, tokens=2) as traffic:
        roll_gateways(scene)
        assert all(stream.running for stream in streams), "the streams ended before the rollout did"
        ended = [stream.result(120) for stream in streams]
        traffic.stop(after=50)
        traffic.assert_nothing_failed(at_least=50)
    assert all(seen.whole and seen.tokens == 400 for seen in ended), ended
    scene.until(lambda: len(scene.pods("gateway")) == scene.gateways, within=60, what="old gateways gone")


@any_gateways
@pytest.mark.long
def test_g8_fifty_streams_survive_the_end_of_their_gateways(scene: Scene) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="400ms"), scaling={"target": 100, "drainTimeout": "60s"}
    )
    streams = [client.stream(tokens=150) for _ in range(STREAMS)]
    for stream in streams:
        stream.await_tokens(within=WAKE_SECONDS)
    roll_gateways(scene)
    assert all(stream.running for stream in streams), "the streams ended before the rollout did"
    scene.hurry(*scene.ready_pods("backend"))
    ended = [stream.result(120) for stream in streams]
    assert [seen for seen in ended if not (seen.whole and seen.tokens == 150)] == []


@pytest.mark.long
def test_g8_fifty_streams_survive_the_end_of_their_backend(scene: Scene) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="400ms"), scaling={"target": 100, "drainTimeout": "40s"}
    )
    streams = [client.stream(tokens=80) for _ in range(STREAMS)]
    for stream in streams:
        stream.await_tokens(within=WAKE_SECONDS)
    (pod,) = scene.ready_pods("backend")
    scene.delete_pod(pod)
    scene.until(
        lambda: client.ask().pod not in ("", pod), within=60, what="new requests go to another replica"
    )
    scene.hurry(pod)
    ended = [stream.result(120) for stream in streams]
    assert [seen for seen in ended if not (seen.whole and seen.tokens == 80)] == []
