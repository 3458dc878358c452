"""The API server is away for a minute: what is warm stays warm, what is cold waits."""

from __future__ import annotations

import time

import pytest
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.last

AWAY_SECONDS = 60.0


def test_a_minute_without_an_api_server_fails_no_warm_request_and_holds_the_cold_ones(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    scene.create("warm", **service_spec(scene.runtime("fast")))
    scene.create("cold", **service_spec(scene.runtime("cold"), scaling={"activationTimeout": "4m"}))
    for name in ("warm", "cold"):
        scene.await_idle(name)
    warm, cold = scene.client("warm"), scene.client("cold")
    with turns.alone():
        scene.await_idle("cold")
        assert warm.ask().status == 200
        with Traffic(warm) as traffic:
            with lab.cluster.pause_api_server():
                begun = time.monotonic()
                stream = cold.stream(tokens=5)
                stream.await_heartbeats(2)
                time.sleep(max(0.0, begun + AWAY_SECONDS - time.monotonic()))
                assert stream.running, stream.seen
                assert stream.seen.tokens == 0
            seen = stream.result(WAKE_SECONDS)
            traffic.stop(after=200)
            traffic.assert_nothing_failed(at_least=200)
        assert seen.whole, seen
        scene.await_phase("Ready", "cold")
    scene.await_zero("warm")
