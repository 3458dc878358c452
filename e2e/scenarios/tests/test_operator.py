"""E3, E6: operators change hands, die at any moment, or are not there: requests don't depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.operators import PODS, apart, both_operators, leader, no_operators
from noctaya_scenarios.release import NAMESPACE, OPERATOR
from noctaya_scenarios.scene import WAKE_SECONDS, Scene, holds
from noctaya_scenarios.turns import Turns
from noctaya_scenarios.waiting import until

pytestmark = pytest.mark.last

TAKEOVER_SECONDS = 30


def test_e3_a_standby_takes_over_and_finishes_what_was_just_asked(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    scene.deploy()
    with turns.alone():
        found = apart(lab)
        budget = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{OPERATOR}"
        until(
            lambda: lab.api.get(budget)["status"]["disruptionsAllowed"] == 1,
            within=60,
            what="one operator may be disrupted",
        )
        before = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
        old = leader(lab)
        with faults.cordoned(lab.access, *set(found.values())):
            scene.change(scaling={"target": 7})
            lab.api.delete(f"{PODS}/{old}")
            new = until(
                lambda: leader(lab) not in ("", old) and leader(lab),
                within=TAKEOVER_SECONDS,
                what="a new leader",
            )
            assert new in found
            scene.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
            (trigger,) = scene.scaled_object()["spec"]["triggers"]
            assert trigger["metadata"]["targetValue"] == "7"
        after = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
        assert after == before
        both_operators(lab)


def moments(scene: Scene, name: str) -> dict[str, Callable[[], object]]:
    """The steps of an activation, each with a look that tells whether it has come."""

    def pods_where(state: Callable[[dict[str, object]], object]) -> Callable[[], object]:
        return lambda: any(state(pod) for pod in scene.pods("backend", name))

    return {
        "demand told": lambda: scene.demand(name) == 1,
        "replica written": lambda: scene.replicas(name) == 1,
        "scheduled": pods_where(lambda pod: holds(_status(pod), "PodScheduled")),
        "started": pods_where(_started),
        "ready": lambda: scene.ready_pods("backend", name),
    }


def _status(pod: dict[str, object]) -> dict[str, object]:
    status = pod["status"]
    assert isinstance(status, dict)
    return status


def _started(pod: dict[str, object]) -> bool:
    statuses = _status(pod).get("containerStatuses") or []
    assert isinstance(statuses, list)
    return any("running" in each["state"] for each in statuses)


KILLED_AT = (("started", "demand told"), ("ready", "replica written"), ("scheduled",))
"""Steps of an activation at which the operator is killed, those of several activations at the same time."""


@pytest.mark.timeout(900)
def test_an_operator_killed_at_any_step_of_an_activation_costs_the_client_nothing(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    assert {step for steps in KILLED_AT for step in steps} == set(moments(scene, ""))
    # Up for long enough to be seen ready by an operator that has to wait for the lease first.
    spec = service_spec(scene.runtime(STUB_STARTUP_DELAY="3s"), scaling={"scaleDownStabilization": "2m"})
    names = [[(f"chat-{step.replace(' ', '-')}", step) for step in steps] for steps in KILLED_AT]
    for each in names:
        for name, _ in each:
            scene.create(name, **spec)
    for each in names:
        for name, _ in each:
            scene.await_idle(name)
    with turns.alone():
        for each in names:
            for name, _ in each:
                scene.await_idle(name)
            both_operators(lab)
            kill_at(lab, scene, each)


def kill_at(lab: Lab, scene: Scene, activations: Sequence[tuple[str, str]]) -> None:
    """Wake services, each when the one before is at its step, and kill the operator when the last is."""
    streams = {}
    for name, step in activations:
        streams[name] = scene.client(name).stream(tokens=5)
        scene.until(moments(scene, name)[step], within=120, what=f"{name}: {step}")
    faults.kill_containers(leader(lab))
    for name, step in activations:
        seen = streams[name].result(WAKE_SECONDS)
        assert seen.whole, f"killed when {step}: {seen}"
        status = scene.await_phase("Ready", name)
        # An activation that was over before another operator led has no record, but never a wrong one.
        record = status.get("lastActivation")
        assert record is None or record["outcome"] == "Succeeded", f"killed when {step}: {status}"
        scene.delete(name)


def test_e6_without_an_operator_one_gateways_demand_wakes_the_model_though_the_other_is_gone(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    client = scene.deploy(scaling={"activationTimeout": "2m"})
    with turns.alone():
        scene.await_idle()
        with no_operators(lab):
            # KEDA polls once a minute now: what wakes the model is the push.
            path = f"/apis/keda.sh/v1alpha1/namespaces/{scene.namespace}/scaledobjects/chat"
            scene.api.merge(path, {"spec": {"pollingInterval": 60}})
            scene.until(lambda: scene.streams() == 1, within=120, what="KEDA listens after the change")
            stream = client.stream(tokens=10)
            scene.until(lambda: scene.demand() == 1, within=60, what="the demand is known")
            idle = [pod for pod in scene.ready_pods("gateway") if not scene.gateway_sample(pod, "pending")]
            assert len(idle) == 1
            scene.delete_pod(idle[0])
            scene.until(lambda: scene.replicas() >= 1, within=15, what="a replica within 15 s")
            seen = stream.result(WAKE_SECONDS)
            assert seen.whole, seen
        both_operators(lab)
    scene.until(
        lambda: scene.scaled_object()["spec"]["pollingInterval"] == 5, within=90, what="our interval is back"
    )
    scene.await_zero()
