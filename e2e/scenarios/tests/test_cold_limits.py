"""E11, E12: bounded waiting."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from noctaya_scenarios.chat import Answer
from noctaya_scenarios.manifests import MORE_THAN_ANY_NODE_HAS
from noctaya_scenarios.scene import Scene

pytestmark = pytest.mark.any_gateways

UNSCHEDULABLE = {"accelerators": MORE_THAN_ANY_NODE_HAS}
TIMEOUT_SECONDS = 20
AT_ONCE_SECONDS = 10
"""Of a refusal: far from the time that a held request waits, on a machine however busy."""


def test_e11_reject_mode_refuses_a_cold_request_at_once_and_wakes_the_model(scene: Scene) -> None:
    client = scene.deploy(resources=UNSCHEDULABLE, endpoint={"coldStart": {"mode": "reject"}})
    refused = client.ask()
    assert (refused.status, refused.code) == (503, "cold_start")
    assert refused.seconds < AT_ONCE_SECONDS
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    scene.until(lambda: scene.demand() == 1, within=30, what="demand although the client was refused")
    scene.until(lambda: scene.replicas() == 1, within=60, what="a replica asked for")
    scene.await_condition("Ready", "False", "SchedulingDelayed")


def test_e12_a_full_queue_refuses_and_a_wait_ends_with_its_timeout(scene: Scene) -> None:
    client = scene.deploy(
        resources=UNSCHEDULABLE,
        scaling={"activationTimeout": f"{TIMEOUT_SECONDS}s"},
        endpoint={"maxQueue": 1},
    )
    with ThreadPoolExecutor() as pool:
        asked: list[Future[Answer]] = []

        def each_gateway_is_full() -> bool:
            """Demand counts those that wait; one that nobody answered yet may still be refused."""
            undone = [each for each in asked if not each.done()]
            if scene.demand() == scene.gateways == len(undone):
                return True
            if len(undone) < scene.gateways:  # whichever gateway gets the next one
                asked.append(pool.submit(client.ask))
            return False

        scene.until(each_gateway_is_full, within=TIMEOUT_SECONDS, what="one request waits at each gateway")
        full = client.ask()
        ended = [each.result() for each in asked]
    assert (full.status, full.code, full.headers["retry-after"]) == (429, "queue_full", "5")
    assert full.seconds < AT_ONCE_SECONDS
    timed_out = [each for each in ended if each.status == 503]
    assert len(timed_out) == scene.gateways
    assert {each.code for each in timed_out} == {"activation_timeout"}
    waited = [each.seconds for each in timed_out]
    assert all(TIMEOUT_SECONDS - 1 <= each < 2 * TIMEOUT_SECONDS for each in waited), waited
    assert all(each.status == 429 for each in ended if each not in timed_out)
