"""KEDA goes and comes back while requests wait and while they flow."""

from __future__ import annotations

import pytest
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.traffic import Traffic
from noctaya_scenarios.turns import Turns

pytestmark = pytest.mark.last


def test_a_request_held_while_keda_dies_is_served_when_it_is_back(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    client = scene.deploy(scaling={"activationTimeout": "3m"})
    with turns.alone():
        scene.await_idle()
        lab.access.kubectl("-n", "keda", "scale", "deployment/keda-operator", "--replicas=0")
        try:
            scene.until(lambda: scene.streams() == 0, within=120, what="KEDA no longer listens")
            stream = client.stream(tokens=5)
            stream.await_heartbeats(3)
            assert scene.replicas() == 0
        finally:
            lab.access.kubectl("-n", "keda", "scale", "deployment/keda-operator", "--replicas=1")
        seen = stream.result(150)
        assert seen.whole, seen
        scene.until(lambda: scene.streams() == 1, within=120, what="KEDA listens again")
    scene.await_zero()


def test_keda_killed_in_a_hold_and_under_load_fails_nothing(lab: Lab, scene: Scene, turns: Turns) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_STARTUP_DELAY="5s"), scaling={"activationTimeout": "3m"})
    with turns.alone():
        scene.await_idle()
        stream = client.stream(tokens=5)
        stream.await_heartbeats()
        faults.kill_keda(lab.access)
        seen = stream.result(150)
        assert seen.whole, seen
        with Traffic(client) as traffic:
            faults.kill_keda(lab.access)
            scene.until(lambda: scene.streams() == 1, within=150, what="KEDA listens again")
            assert scene.replicas() == 1
            traffic.stop(after=50)
            traffic.assert_nothing_failed(at_least=50)
    scene.until(lambda: scene.replicas() == 0, within=WAKE_SECONDS, what="back at zero")
