"""L: a quota that leaves no room, as the real admission plugin and ReplicaSet controller tell it."""

from __future__ import annotations

from noctaya_apiserver.client import Object
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.world import World, condition_of, runtime

GPU = "requests.nvidia.com/gpu"


def quota(world: World, amount: str) -> None:
    """A quota on accelerators alone, so that gateways fit; the controller that counts is played."""
    metadata = {"name": "accelerators", "namespace": world.namespace}
    path = f"/api/v1/namespaces/{world.namespace}/resourcequotas/accelerators"
    world.api.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {GPU: amount}}}
    )
    counted: Object = {"status": {"hard": {GPU: amount}, "used": {GPU: "0"}}}
    world.api.merge(f"{path}/status", counted)


def test_l12_a_quota_without_room_is_told_with_its_numbers_and_forgotten_once_there_is(world: World) -> None:
    name = f"engine-{world.namespace}"
    gpu = {"resourceName": "nvidia.com/gpu"}
    world.api.apply(runtime(name, vendor="nvidia", accelerator=gpu))
    quota(world, "0")
    world.create(runtime={"name": name})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=1)
    status = world.await_condition("Degraded", "True", "QuotaExceeded")
    assert status["phase"] == "Degraded"
    assert condition_of(status, "Ready") == ("False", "QuotaExceeded")
    (message,) = [each["message"] for each in status["conditions"] if each["type"] == "Degraded"]
    assert "exceeded quota: accelerators" in message
    assert f"requested: {GPU}=1" in message
    assert f"limited: {GPU}=0" in message
    quota(world, "1")
    status = world.await_condition("Ready", "True", "Available", within=90)
    assert condition_of(status, "Degraded") == ("False", "Healthy")
