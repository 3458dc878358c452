"""Node drains: planned maintenance disturbs nobody."""

from __future__ import annotations

import pytest
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.last


def test_a_node_drain_fails_no_request_and_cuts_no_stream(lab: Lab, scene: Scene, turns: Turns) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="200ms"),
        scaling={"drainTimeout": "40s", "activationTimeout": "3m"},
    )
    with turns.alone():
        scene.await_idle()
        streams = [client.stream(tokens=100) for _ in range(6)]
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
            traffic.stop(after=10)
            traffic.assert_nothing_failed(at_least=10)
    assert all(seen.whole and seen.tokens == 100 for seen in ended), ended
