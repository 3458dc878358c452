"""What the status says: phases, reasons and Events, seen as a user sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from noctaya_apiserver import wait_for
from noctaya_apiserver.client import TABLE, Object
from noctaya_apiserver.keda_stand_in import report_conditions, scale
from noctaya_apiserver.world import World, condition_of, runtime

UNBOUND = "example.com/unschedulable:1"
FAILURE = "serving.noctaya.io/activation-failure"


def with_runtime(world: World, *, image: str, **spec: Any) -> str:
    """A runtime for this test's namespace alone."""
    name = f"engine-{world.namespace}"
    world.api.apply(runtime(name, image=image, **spec))
    return name


def activate(world: World, *, name: str = "chat", replicas: int = 1) -> None:
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)
    scale(world.api, namespace=world.namespace, deployment=name, replicas=replicas)


def gateway_annotations(world: World) -> list[str]:
    pods = world.api.items(
        f"/api/v1/namespaces/{world.namespace}/pods", labelSelector="serving.noctaya.io/gateway=chat"
    )
    return [(pod["metadata"].get("annotations") or {}).get(FAILURE, "") for pod in pods]


def make_older(world: World, status: Object) -> None:
    """Gateways are told of a failure that lasted a minute: let this one have begun an hour ago."""
    before = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{**each, "lastTransitionTime": before} for each in status["conditions"]]
    world.api.merge(f"{world.path()}/status", {"status": {"conditions": conditions}})
    world.change(scaling={"target": 5})  # a status alone is no reason for a pass


def test_from_zero_to_ready_and_back(world: World) -> None:
    world.create()
    status = world.await_phase("ScaledToZero")
    assert condition_of(status, "Ready") == ("False", "ScaledToZero")
    assert condition_of(status, "Degraded") == ("False", "Inactive")
    activate(world)
    status = world.await_phase("Ready")
    assert condition_of(status, "Ready") == ("True", "Available")
    assert condition_of(status, "Degraded") == ("False", "Healthy")
    assert status["replicas"] == 1
    table = world.api.request("GET", world.path(), accept=TABLE)
    assert table["rows"][0]["cells"][:4] == ["chat", "Ready", "engine", 1]
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=0)
    status = world.await_phase("ScaledToZero")
    assert "replicas" not in status


def test_t1_an_activation_leaves_its_timeline(world: World) -> None:
    world.create()
    activate(world)
    steps = ("requested", "replicasWritten", "scheduled", "started", "ready")
    # The Deployment may be seen ready a moment before its Pod is.
    status = world.await_status(
        lambda found: found.get("phase") == "Ready" and {*steps} <= found.get("lastActivation", {}).keys()
    )
    record = status["lastActivation"]
    moments = [datetime.fromisoformat(record[name]) for name in steps]
    assert moments == sorted(moments)
    assert record["outcome"] == "Succeeded"
    assert "total" in record["durations"]


def test_l3_an_image_that_can_not_be_pulled_is_told_once_and_forgotten_when_it_can(world: World) -> None:
    name = with_runtime(world, image="example.com/missing:1")
    world.create(runtime={"name": name})
    activate(world)
    status = world.await_condition("Degraded", "True", "ImagePullFailed")
    assert status["phase"] == "Degraded"
    told = wait_for(lambda: [e for e in world.events() if e["type"] == "Warning"], what="a Warning")
    assert [event["reason"] for event in told] == ["ImagePullFailed"]
    make_older(world, status)
    wait_for(lambda: all(gateway_annotations(world)), what="gateways that know")
    with_runtime(world, image="example.com/engine:1")
    status = world.await_condition("Degraded", "False", "Healthy")
    assert condition_of(status, "Ready") == ("True", "Available")
    wait_for(lambda: "BackendRecovered" in [e["reason"] for e in world.events()], what="the recovery")
    wait_for(lambda: not any(gateway_annotations(world)), what="gateways that forgot")


@pytest.mark.parametrize(
    ("image", "degraded", "ready"),
    [
        ("example.com/crash:1", ("True", "CrashLoopBackOff"), ("False", "CrashLoopBackOff")),
        ("example.com/slow:1", ("False", "Progressing"), ("False", "ModelLoading")),
        ("example.com/unschedulable:1", ("False", "Progressing"), ("False", "SchedulingDelayed")),
    ],
)
def test_l12_what_a_pod_shows_becomes_the_reason(
    world: World, image: str, degraded: tuple[str, str], ready: tuple[str, str]
) -> None:
    world.create(runtime={"name": with_runtime(world, image=image)})
    activate(world)
    status = world.await_condition("Ready", *ready)
    assert condition_of(status, "Degraded") == degraded


def test_s7_a_missing_runtime_is_told_and_found_once_it_is_there(world: World) -> None:
    name = f"later-{world.namespace}"
    world.create(runtime={"name": name})
    status = world.await_condition("Degraded", "True", "RuntimeResolution")
    assert condition_of(status, "AutoscalingReady") == ("False", "RuntimeResolution")
    assert not world.objects()
    world.api.create(runtime(name))
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"model": {"source": {"uri": "gs://bucket/key"}}}, "ModelResolution"),
        ({"model": {"source": None, "catalogRef": "qwen"}}, "ModelResolution"),
        ({"model": {"source": {"uri": "oci://registry/repo:tag"}}}, "ModelResolution"),
        ({"model": {"source": {"uri": "pvc://claim/../etc"}}}, "ModelResolution"),
        ({"resources": {"fraction": {"cores": 50}}}, "Render"),
        ({"scaling": {"metric": "kvCacheUtil"}}, "ScaledObject"),
        ({"cache": {"strategy": "BakedImage"}}, "Render"),
        ({"runtime": {"name": "engine", "argsOverride": ["{{ .Nope }}"]}}, "Render"),
        ({"runtime": {"name": None, "selector": {"vendor": ["intel"]}}}, "RuntimeResolution"),
        (
            {
                "model": {"source": {"uri": f"oci://registry/repo@sha256:{'a' * 64}"}},
                "cache": {"strategy": "None"},
            },
            "Prewarm",
        ),
    ],
)
def test_a_service_that_can_not_be_made_says_why_and_makes_nothing(
    world: World, spec: dict[str, Any], reason: str
) -> None:
    world.create(**spec)
    status = world.await_condition("Degraded", "True", reason)
    assert status["phase"] == "Degraded"
    assert condition_of(status, "Ready") == ("False", reason)
    assert not world.objects()


def test_o4_what_keda_says_of_its_object_shows_on_the_service(world: World) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    path = f"/apis/keda.sh/v1alpha1/namespaces/{world.namespace}/scaledobjects/chat"
    wait_for(lambda: world.api.get(path).get("status"), what="KEDA's first word on it")
    report_conditions(world.api, path, Ready="False", Active="False")
    world.await_condition("AutoscalingReady", "False", "ScaledObjectNotReady")
    report_conditions(world.api, path, Ready="True", Active="False")
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    paused = {"autoscaling.keda.sh/paused-replicas": "0"}
    world.api.merge(path, {"metadata": {"annotations": paused}}, manager="kubectl-annotate")
    world.await_condition("AutoscalingReady", "False", "ScaledObjectPaused")


def enforce(world: World, level: str) -> None:
    label = {"pod-security.kubernetes.io/enforce": level}
    world.api.merge(f"/api/v1/namespaces/{world.namespace}", {"metadata": {"labels": label}})


def test_o10_everything_but_the_engine_runs_where_pods_are_restricted(world: World) -> None:
    enforce(world, "restricted")
    world.create(cache={"strategy": "SharedPVC", "prewarm": True})
    world.await_phase("ScaledToZero")
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=1)
    status = world.await_condition("Degraded", "True", "PodSecurityDenied")
    (said,) = {each["message"] for each in status["conditions"] if each["type"] == "Degraded"}
    assert "set podSecurity.level of the InferenceRuntime to restricted" in said


def test_o10_a_service_on_a_restricted_runtime_runs_where_pods_are_restricted(world: World) -> None:
    enforce(world, "restricted")
    name = with_runtime(world, image="example.com/engine:1", podSecurity={"level": "restricted"})
    world.create(cache={"strategy": "SharedPVC", "prewarm": True}, runtime={"name": name})
    activate(world)
    world.await_phase("Ready")


def test_o10_engines_run_where_pods_keep_to_the_baseline(world: World) -> None:
    enforce(world, "baseline")
    world.create(cache={"strategy": "SharedPVC", "prewarm": True})
    activate(world)
    world.await_phase("Ready")


def test_o7_a_storage_class_that_is_not_there_is_named(world: World) -> None:
    world.create(cache={"storageClassName": "nowhere"}, runtime={"name": with_runtime(world, image=UNBOUND)})
    activate(world)
    status = world.await_condition("Degraded", "True", "StorageClassMissing")
    (said,) = {each["message"] for each in status["conditions"] if each["type"] == "Degraded"}
    assert "nowhere" in said


def test_a_runtime_says_whether_it_is_usable_and_who_uses_it(world: World) -> None:
    name = with_runtime(world, image="example.com/engine:1")
    path = f"/apis/serving.noctaya.io/v1alpha1/inferenceruntimes/{name}"
    world.create(runtime={"name": name})

    def usable() -> tuple[str, str]:
        return condition_of(world.api.get(path).get("status") or {}, "Usable")

    wait_for(lambda: usable() == ("True", "Valid"), what="a usable runtime")
    wait_for(lambda: world.api.get(path)["status"].get("services") == 1, what="one service")
    world.delete()
    wait_for(lambda: not world.api.get(path)["status"].get("services"), what="no service")
    broken = {"image": "example.com/engine:1", "args": ["{{ .Nope }}"], "port": {}}
    with_runtime(world, image="", container=broken)
    wait_for(lambda: usable()[0] == "False", what="an unusable runtime")
