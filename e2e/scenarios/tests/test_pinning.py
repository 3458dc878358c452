"""`noctaya wake`, `pin`, `unpin`, `sleep`: a service kept up or put to sleep, whatever its demand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from noctaya_scenarios.command_line import noctaya
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import WAKE_SECONDS, Scene

IDLE = "5s"
"""scaleDownStabilization: how long a service without demand stays up by itself."""


def ask(lab: Lab, scene: Scene, words: Sequence[str]) -> Any:
    code, told = noctaya(lab, *words, "chat", f"--namespace={scene.namespace}")
    assert code == 0, told
    return told


@pytest.mark.long
def test_a_pinned_service_comes_up_without_a_request_and_outlives_its_idle_time(
    lab: Lab, scene: Scene
) -> None:
    client = scene.deploy(scaling={"scaleDownStabilization": IDLE})
    told = ask(lab, scene, ["pin", "--wait", "--timeout", f"{WAKE_SECONDS:.0f}s"])
    assert told["reached"] is True
    (pod,) = scene.ready_pods("backend")
    assert scene.demand() == 0, "nobody asked the model for anything"
    scene.until(
        lambda: all(
            scene.gateway_sample(each, "backends", state="ready") for each in scene.ready_pods("gateway")
        ),
        within=60,
        what="every gateway knows the replica",
    )
    assert client.ask().headers.get("x-noctaya-cold-start") is None
    # Twice as long as KEDA, which looks every 5 s, would have left it.
    end = time.monotonic() + 20
    while time.monotonic() < end:
        assert scene.ready_pods("backend") == [pod]
        time.sleep(2)
    ask(lab, scene, ["unpin"])
    scene.await_zero()


@pytest.mark.long
def test_a_service_put_to_sleep_ends_its_stream_frees_its_place_and_wakes_for_nobody(
    lab: Lab, scene: Scene
) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="100ms"),
        scaling={"scaleDownStabilization": "1h", "drainTimeout": "20s"},
    )
    stream = client.stream(tokens=80)
    stream.await_tokens(5, within=WAKE_SECONDS)
    told = ask(lab, scene, ["sleep", "--wait", "--timeout", "120s"])
    assert told["reached"] is True
    # A Pod that has ended holds no accelerator any more, though its object may stand for a moment.
    phases = [pod["status"]["phase"] for pod in scene.pods("backend")]
    assert set(phases) <= {"Succeeded", "Failed"}, "the last Pod is gone once it sleeps"
    seen = stream.result(90)
    assert (seen.whole, seen.tokens) == (True, 80), seen
    refused = client.ask()
    assert (refused.status, refused.code) == (503, "asleep")
    assert int(refused.headers["retry-after"]) >= 1
    scene.until(lambda: scene.demand() == 0, within=60, what="a refused request leaves no demand")
    assert scene.replicas() == 0
    scene.await_status(lambda found: (found["phase"], found["keep"]["state"]) == ("ScaledToZero", "Asleep"))
    ask(lab, scene, ["wake", "--for", "30s", "--wait", "--timeout", f"{WAKE_SECONDS:.0f}s"])
    assert client.ask().status == 200


def test_who_is_held_when_the_service_is_put_to_sleep_is_told(lab: Lab, scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_STARTUP_DELAY="120s"))
    stream = client.stream()
    stream.await_heartbeats(1)
    ask(lab, scene, ["sleep"])
    seen = stream.result(120)
    assert [error["code"] for error in seen.errors] == ["asleep"], seen
    scene.await_zero()
    scene.until(lambda: scene.demand() == 0, within=60, what="nothing wants it any more")
