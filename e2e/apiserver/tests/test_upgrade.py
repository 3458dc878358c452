"""What the v0.4 alpha left is taken over as it runs: no rollout of a model, no conflict, nothing lost."""

from __future__ import annotations

import base64
from collections.abc import Callable

from noctaya_apiserver import wait_for
from noctaya_apiserver.alpha import MANAGER, TOKEN, alpha_objects, alpha_runtime, alpha_service
from noctaya_apiserver.client import Object
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World, condition_of

Start = Callable[..., OperatorProcess]


def left_by_the_alpha(world: World) -> Object:
    """A service with everything the alpha made, its model running; returns it."""
    world.api.apply(alpha_runtime())
    service = world.api.create(alpha_service(world.namespace))
    objects = alpha_objects(service)
    for obj in objects:
        if obj["kind"] in {"Secret", "PersistentVolumeClaim", "Job"}:
            world.api.create(obj, fieldManager="manager")
        else:
            world.api.apply(obj, manager=MANAGER)
    old = {
        "phase": "Ready",
        "resolvedRuntime": "alpha-engine",
        "replicas": 1,
        "endpointURL": f"http://chat.{world.namespace}.svc/v1",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Available",
                "message": "model is available",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    world.api.merge(f"{world.path()}/status", {"status": old}, manager="manager")
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=1)
    wanted = {"chat": 1, "chat-gateway": 2, "chat-scaler": 1}
    wait_for(lambda: {name: ready(world, name) for name in wanted} == wanted, what="everything ready")
    wait_for(lambda: world.await_object("batch/v1/jobs", "chat-prewarm")["status"].get("succeeded"))
    return service


def ready(world: World, name: str) -> int:
    found = world.await_object("apps/v1/deployments", name)
    return int((found.get("status") or {}).get("readyReplicas") or 0)


def engine_pods(world: World) -> list[str]:
    pods = world.api.items(
        f"/api/v1/namespaces/{world.namespace}/pods",
        labelSelector="serving.noctaya.io/runtime=alpha-engine",
    )
    return [pod["metadata"]["uid"] for pod in pods]


def test_an_alpha_service_is_taken_over_without_a_rollout_of_its_model(
    bench: World, start_operator: Start
) -> None:
    service = left_by_the_alpha(bench)
    before, pods = bench.objects(), engine_pods(bench)
    start_operator("--gateway-replicas=2")
    status = bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    assert status["phase"] == "Ready"
    assert condition_of(status, "Degraded") == ("False", "Healthy")
    since = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}["Ready"]
    assert since == "2026-01-01T00:00:00Z", "it was ready all the time"

    after = bench.objects()
    assert set(after) == {*before, "services/chat-pods"}
    kept = {name: obj["metadata"]["uid"] for name, obj in after.items() if name in before}
    assert kept == {name: obj["metadata"]["uid"] for name, obj in before.items()}
    uids = {obj["metadata"]["ownerReferences"][0]["uid"] for obj in after.values()}
    assert uids == {service["metadata"]["uid"]}

    backend, was = after["deployments/chat"]["spec"], before["deployments/chat"]["spec"]
    assert backend["template"] == was["template"]
    assert backend["replicas"] == 1
    assert engine_pods(bench) == pods
    assert base64.b64decode(after["secrets/chat-demand-auth"]["data"]["token"]).decode() == TOKEN
    for name in ("services/chat", "services/chat-backend", "services/chat-scaler"):
        assert after[name]["spec"]["clusterIP"] == before[name]["spec"]["clusterIP"]
    assert (
        after["persistentvolumeclaims/chat-cache"]["spec"]
        == before["persistentvolumeclaims/chat-cache"]["spec"]
    )


def test_after_an_upgrade_gateways_are_ours_and_nothing_of_the_alpha_is_left_in_them(
    bench: World, start_operator: Start
) -> None:
    left_by_the_alpha(bench)
    start_operator("--gateway-replicas=2")
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")

    def images() -> set[str]:
        made = (bench.await_object("apps/v1/deployments", f"chat-{part}") for part in ("gateway", "scaler"))
        return {obj["spec"]["template"]["spec"]["containers"][0]["image"] for obj in made}

    wait_for(lambda: all("alpha" not in image for image in images()), what="our images")
    scaler = bench.await_object("apps/v1/deployments", "chat-scaler")
    assert "args" not in scaler["spec"]["template"]["spec"]["containers"][0]


def test_a_model_of_the_alpha_is_hardened_with_the_next_change_that_restarts_it(
    bench: World, start_operator: Start
) -> None:
    left_by_the_alpha(bench)
    start_operator("--gateway-replicas=2")
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    bench.change(resources={"cpu": "100m"})

    def pod() -> Object:
        found: Object = bench.await_object("apps/v1/deployments", "chat")["spec"]["template"]["spec"]
        return found

    wait_for(lambda: "seccompProfile" in pod()["securityContext"], what="a hardened engine")
    assert bench.await_object("apps/v1/deployments", "chat")["spec"]["replicas"] == 1
