"""O4 and O5: KEDA may be late, gone or unhappy; the ScaledObject waits for the scaler."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster
from noctaya_operator.kinds import SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, HPAS

pytestmark = pytest.mark.looptime


async def test_o4_keda_may_come_later() -> None:
    async with Cluster(keda=False) as cluster:
        await cluster.service()
        assert cluster.condition("AutoscalingReady") == ("False", "AutoscalingUnavailable")
        cluster.server.serve(SCALED_OBJECTS)
        await cluster.settle(60)
        cluster.the(DEPLOYMENTS, "chat")
        await cluster.gateways_answer()
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")


async def test_o4_keda_may_go_away_and_a_backend_that_serves_still_serves() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.scale(1, ready=1)
        cluster.server.withdraw(SCALED_OBJECTS)
        await cluster.settle(60)
        assert cluster.condition("AutoscalingReady") == ("False", "AutoscalingUnavailable")
        assert cluster.condition("Ready") == ("True", "Available")
        assert cluster.condition("Degraded") == ("True", "AutoscalingUnavailable")
        cluster.server.serve(SCALED_OBJECTS)
        await cluster.settle(60)
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")
        assert cluster.condition("Degraded") == ("False", "Healthy")


async def test_o4_what_keda_says_of_its_scaled_object_shows() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        said = {"type": "Ready", "status": "False", "reason": "Failed", "message": "no such trigger"}
        cluster.server.set_status(SCALED_OBJECTS, NAMESPACE, "chat", {"conditions": [said]})
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("False", "ScaledObjectNotReady")
        assert "no such trigger" in cluster.message("AutoscalingReady")
        ok = {"type": "Ready", "status": "True"}
        cluster.server.set_status(SCALED_OBJECTS, NAMESPACE, "chat", {"conditions": [ok]})
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")


async def test_o4_a_pause_shows_and_is_left_alone() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        pause = {"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}}
        await cluster.user.patch_merge(SCALED_OBJECTS, NAMESPACE, "chat", pause)
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("False", "ScaledObjectPaused")
        assert "autoscaling.keda.sh/paused" in cluster.the(SCALED_OBJECTS, "chat")["metadata"]["annotations"]


async def test_o4_an_autoscaler_without_our_metric_shows() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        cluster.server.put(hpa([{"type": "Resource", "resource": {"name": "cpu"}}]))
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("False", "FallbackMetric")
        failing = {"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric"}
        cluster.server.put(hpa([{"type": "External"}], failing))
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("False", "HorizontalPodAutoscalerNotReady")
        idle = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}
        cluster.server.put(hpa([{"type": "External"}], idle))
        await cluster.settle()
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")


async def test_o5_the_scaled_object_comes_once_the_scaler_answers() -> None:
    async with Cluster() as cluster:
        await cluster.service()
        assert cluster.names_of(SCALED_OBJECTS) == []
        assert cluster.status()["phase"] == "Pending"
        assert cluster.condition("AutoscalingReady") == ("False", "ScalerNotReady")
        await cluster.gateways_answer(ready=False)
        assert cluster.names_of(SCALED_OBJECTS) == []
        await cluster.gateways_answer()
        assert cluster.names_of(SCALED_OBJECTS) == ["chat"]
        await cluster.gateways_answer(ready=False)
        assert cluster.names_of(SCALED_OBJECTS) == ["chat"]


async def test_o5_a_new_backend_starts_at_zero_and_its_replicas_are_never_ours() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        assert cluster.the(DEPLOYMENTS, "chat")["spec"]["replicas"] == 0
        await cluster.scale(3)
        await cluster.change(endpoint={"maxQueue": 9}, resources={"cpu": "2"})
        backend = cluster.the(DEPLOYMENTS, "chat")
        assert backend["spec"]["replicas"] == 3
        owners = {
            entry["manager"]
            for entry in backend["metadata"]["managedFields"]
            if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
        }
        assert owners == {"keda"}


def hpa(metrics: list[Object], *conditions: Object) -> Object:
    return {
        "apiVersion": HPAS.api_version,
        "kind": HPAS.kind,
        "metadata": {
            "name": "keda-hpa-chat",
            "namespace": NAMESPACE,
            "labels": {"scaledobject.keda.sh/name": "chat", "app.kubernetes.io/managed-by": "keda-operator"},
        },
        "spec": {"metrics": metrics},
        "status": {"conditions": list(conditions)},
    }
