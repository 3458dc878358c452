"""E11, E12: bounded waiting."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from noctaya_scenarios.chat import Answer
from noctaya_scenarios.manifests import MORE_THAN_ANY_NODE_HAS
from noctaya_scenarios.scene import Scene

pytestmark = pytest.mark.any_gateways

UNSCHEDULABLE = {"accelerators": MORE_THAN_ANY_NODE_HAS}


def test_e11_reject_mode_refuses_a_cold_request_at_once_and_wakes_the_model(scene: Scene) -> None:
    client = scene.deploy(resources=UNSCHEDULABLE, endpoint={"coldStart": {"mode": "reject"}})
    refused = client.ask()
    assert (refused.status, refused.code) == (503, "cold_start")
    assert refused.seconds < 3
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    scene.until(lambda: scene.demand() == 1, within=10, what="demand although the client was refused")
    scene.until(lambda: scene.replicas() == 1, within=20, what="a replica asked for")
    scene.await_condition("Ready", "False", "SchedulingDelayed", within=30)


def test_e12_a_full_queue_refuses_and_a_wait_ends_with_its_timeout(scene: Scene) -> None:
    client = scene.deploy(
        resources=UNSCHEDULABLE, scaling={"activationTimeout": "15s"}, endpoint={"maxQueue": 1}
    )
    with ThreadPoolExecutor() as pool:
        waiting: list[Future[Answer]] = []
        for _ in range(40):
            request = pool.submit(client.ask)
            waiting.append(request)
            if scene.demand() == scene.gateways and any(each.done() for each in waiting):
                break
        held = [each for each in waiting if not each.done()]
        full = client.ask()
        ended = [each.result() for each in waiting]
    assert (full.status, full.code, full.headers["retry-after"]) == (429, "queue_full", "5")
    assert full.seconds < 3
    timed_out = [each for each in ended if each.status == 503]
    assert len(timed_out) == scene.gateways == len(held)
    assert {each.code for each in timed_out} == {"activation_timeout"}
    assert all(14 <= each.seconds < 25 for each in timed_out), [each.seconds for each in timed_out]
    assert all(each.status == 429 for each in ended if each not in timed_out)
