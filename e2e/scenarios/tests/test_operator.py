"""E3, E6: operators change hands, die at any moment, or are not there: requests don't depend on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.release import LEASE, NAMESPACE, OPERATOR, OPERATOR_LABELS
from noctaya_scenarios.scene import WAKE_SECONDS, Scene, holds
from noctaya_scenarios.waiting import until

pytestmark = [pytest.mark.last, pytest.mark.xdist_group("last")]

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
TAKEOVER_SECONDS = 30


def operators(lab: Lab) -> dict[str, str]:
    """Nodes of the ready operators, by Pod."""
    pods = lab.api.items(PODS, labelSelector=OPERATOR_LABELS)
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"] and holds(pod["status"], "Ready")
    }


def leader(lab: Lab) -> str:
    """Pod of the operator that holds the lease; blank while nobody does."""
    holder: str = lab.api.get(LEASE)["spec"].get("holderIdentity") or ""
    return holder.rpartition("_")[0]


def both_operators(lab: Lab) -> dict[str, str]:
    return until(
        lambda: found if len(found := operators(lab)) == 2 and leader(lab) in found else {},
        within=120,
        what="two ready operators, one of them leading",
        seen=lambda: (operators(lab), leader(lab)),
    )


def apart(lab: Lab) -> dict[str, str]:
    """Two ready operators on two nodes. A drain leaves both on one, and nobody moves them back."""
    found = both_operators(lab)
    if len(set(found.values())) == 1:
        (standby,) = found.keys() - {leader(lab)}
        lab.api.delete(f"{PODS}/{standby}")
        until(lambda: standby not in operators(lab), within=60, what=f"{standby} is gone")
        found = both_operators(lab)
    assert len(set(found.values())) == 2, f"both operators are on one node: {found}"
    return found


def test_e3_a_standby_takes_over_and_finishes_what_was_just_asked(lab: Lab, scene: Scene) -> None:
    scene.deploy()
    found = apart(lab)
    budget = lab.api.get(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{OPERATOR}")
    assert budget["status"]["disruptionsAllowed"] == 1
    before = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
    old = leader(lab)
    with faults.cordoned(lab.access, *set(found.values())):
        scene.change(scaling={"target": 7})
        lab.api.delete(f"{PODS}/{old}")
        new = until(
            lambda: leader(lab) not in ("", old) and leader(lab), within=TAKEOVER_SECONDS, what="a new leader"
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


@pytest.mark.timeout(900)
def test_an_operator_killed_at_any_step_of_an_activation_costs_the_client_nothing(
    lab: Lab, scene: Scene
) -> None:
    runtime = scene.runtime(STUB_STARTUP_DELAY="3s")
    for number, step in enumerate(moments(scene, "")):
        name = f"chat-{number}"
        client = scene.deploy(name, runtime=runtime)
        both_operators(lab)
        stream = client.stream(tokens=5)
        look = moments(scene, name)[step]
        scene.until(look, within=60, what=step)
        faults.kill_containers(leader(lab))
        seen = stream.result(WAKE_SECONDS)
        assert seen.whole, f"killed when {step}: {seen}"
        status = scene.await_phase("Ready", name, within=90)
        # An activation that was over before another operator led has no record, but never a wrong one.
        record = status.get("lastActivation")
        assert record is None or record["outcome"] == "Succeeded", f"killed when {step}: {status}"
        scene.delete(name)


def test_e6_without_an_operator_one_gateways_demand_wakes_the_model_though_the_other_is_gone(
    lab: Lab, scene: Scene
) -> None:
    client = scene.deploy(scaling={"activationTimeout": "2m"})
    lab.access.kubectl("-n", NAMESPACE, "scale", f"deployment/{OPERATOR}", "--replicas=0")
    try:
        until(lambda: not operators(lab), within=60, what="no operator runs")
        # KEDA polls once a minute now: what wakes the model is the push.
        path = f"/apis/keda.sh/v1alpha1/namespaces/{scene.namespace}/scaledobjects/chat"
        scene.api.merge(path, {"spec": {"pollingInterval": 60}})
        scene.until(lambda: scene.streams() == 1, within=60, what="KEDA listens after the change")
        stream = client.stream(tokens=10)
        scene.until(lambda: scene.demand() == 1, within=10, what="the demand is known")
        idle = [pod for pod in scene.ready_pods("gateway") if not scene.gateway_sample(pod, "pending")]
        assert len(idle) == 1
        scene.delete_pod(idle[0])
        scene.until(lambda: scene.replicas() >= 1, within=15, what="a replica within 15 s")
        seen = stream.result(WAKE_SECONDS)
        assert seen.whole, seen
    finally:
        lab.access.kubectl("-n", NAMESPACE, "scale", f"deployment/{OPERATOR}", "--replicas=2")
    both_operators(lab)
    scene.until(
        lambda: scene.scaled_object()["spec"]["pollingInterval"] == 5, within=30, what="our interval is back"
    )
    scene.await_zero()
