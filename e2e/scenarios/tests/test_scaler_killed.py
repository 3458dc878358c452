"""The aggregate scaler dies: clients notice nothing, KEDA never takes "unknown" for zero."""

from __future__ import annotations

import pytest
from noctaya_scenarios.scene import WAKE_SECONDS, Scene
from noctaya_scenarios.waiting import during

TOKENS = 400
"""Of a stream at 250 ms each: it flows until it is told to hurry."""


@pytest.mark.long
def test_a_scaler_that_dies_during_a_hold_loses_no_demand(scene: Scene) -> None:
    client = scene.deploy(runtime=scene.runtime(STUB_STARTUP_DELAY="25s"))
    stream = client.stream(tokens=5)
    stream.await_heartbeats()
    (scaler,) = scene.ready_pods("scaler")
    scene.delete_pod(scaler, grace=0)
    scene.until(
        lambda: scene.ready_pods("scaler") not in ([], [scaler]), within=120, what="another scaler is ready"
    )
    scene.until(lambda: scene.demand() == 1, within=60, what="the demand is known again")
    seen = stream.result(WAKE_SECONDS)
    assert seen.whole, seen
    scene.await_zero()


@pytest.mark.long
@pytest.mark.parametrize("grace", [0, None], ids=["killed", "stopped"])
def test_s1_a_scaler_that_goes_under_load_never_scales_a_busy_service_down(
    scene: Scene, grace: int | None
) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_TOKEN_DELAY="250ms"),
        scaling={"max": 2, "target": 1, "scaleDownStabilization": "0s", "drainTimeout": "20s"},
    )
    streams = [client.stream(tokens=TOKENS) for _ in range(2)]
    scene.until(lambda: scene.replicas() == 2, within=WAKE_SECONDS, what="two replicas")
    (scaler,) = scene.ready_pods("scaler")
    scene.delete_pod(scaler, grace=grace)
    during(lambda: scene.replicas() == 2, seconds=25, what="two replicas while two streams run")
    scene.until(
        lambda: scene.ready_pods("scaler") not in ([], [scaler]), within=120, what="another scaler is ready"
    )
    assert all(stream.running for stream in streams)
    scene.hurry(*scene.ready_pods("backend"))
    ended = [stream.result(120) for stream in streams]
    assert all(seen.whole and seen.tokens == TOKENS for seen in ended), ended
