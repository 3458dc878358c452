"""The operator as a black box: what it makes of a service, and that it is nothing but that."""

from __future__ import annotations

from pathlib import Path

from noctaya_apiserver import load_objects, wait_for
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World

ROOT = Path(__file__).parents[3]
BACKEND = "apps/v1/deployments"


def test_l1_a_service_gets_its_objects_and_they_are_owned(world: World) -> None:
    created = world.create(cache={"prewarm": True})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    found = world.objects(of="chat")
    assert set(found) == {
        "deployments/chat",
        "deployments/chat-gateway",
        "services/chat",
        "services/chat-backend",
        "services/chat-pods",
        "services/chat-scaler",
        "persistentvolumeclaims/chat-cache",
        "jobs/chat-prewarm",
        "scaledobjects/chat",
    }
    reference = {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "LLMService",
        "name": "chat",
        "uid": created["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert all(each["metadata"]["ownerReferences"] == [reference] for each in found.values())


def test_the_quickstart_comes_up_as_written(world: World) -> None:
    for obj in load_objects(*sorted((ROOT / "examples" / "quickstart").glob("*.yaml"))):
        if obj["kind"] == "LLMService":
            obj["metadata"]["namespace"] = world.namespace
        world.api.apply(obj, fieldValidation="Strict")
    status = world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "smollm2")
    assert status["phase"] == "ScaledToZero"
    assert status["resolvedRuntime"] == "llamacpp-cpu"
    assert status["endpointURL"] == f"http://smollm2.{world.namespace}.svc/v1"


def test_replicas_are_never_ours(world: World) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    backend = world.await_object(BACKEND, "chat")
    assert backend["spec"]["replicas"] == 0
    for entry in backend["metadata"]["managedFields"]:
        if entry["manager"] == "noctaya-operator":
            assert "f:replicas" not in entry["fieldsV1"].get("f:spec", {})
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=1)
    world.await_phase("Ready")
    world.change(resources={"cpu": "100m"})
    world.await_status(lambda status: status["phase"] == "Ready")
    after = world.await_object(BACKEND, "chat")
    assert after["spec"]["replicas"] == 1
    assert after["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_a_backend_that_never_was_scaled_made_no_pod(world: World, operator: OperatorProcess) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")

    def made() -> dict[str, int]:
        found = world.api.items(f"/apis/apps/v1/namespaces/{world.namespace}/replicasets")
        return {each["metadata"]["name"].rpartition("-")[0]: each["spec"]["replicas"] for each in found}

    wait_for(lambda: made() == {"chat": 0, "chat-gateway": 1}, what="a ReplicaSet of each Deployment")
    pods = world.api.items(f"/api/v1/namespaces/{world.namespace}/pods")
    assert {each["metadata"]["labels"].get("serving.noctaya.io/gateway") for each in pods} <= {"chat"}
