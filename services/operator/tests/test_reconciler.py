"""Passes over services, rows L of the contract: what is made, kept, removed, refused, and how it is told."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster, pod, raw_runtime, running, waiting
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, JOBS, PDBS, PVCS, SECRETS, SERVICES
from samples import env_of, merged, pod_of

pytestmark = pytest.mark.looptime


async def test_l1_everything_is_made_owned_and_then_left_alone() -> None:
    async with Cluster() as cluster:
        service = await cluster.idle_service()
        made = {
            (kind.kind, name)
            for kind in (SCALED_OBJECTS, PVCS, DEPLOYMENTS, SERVICES, SECRETS, PDBS, JOBS)
            for name in cluster.names_of(kind)
        }
        assert made == {
            ("ScaledObject", "chat"),
            ("PersistentVolumeClaim", "chat-cache"),
            ("Deployment", "chat"),
            ("Deployment", "chat-gateway"),
            ("Service", "chat"),
            ("Service", "chat-backend"),
            ("Service", "chat-pods"),
            ("Service", "chat-scaler"),
        }
        owner = {
            "apiVersion": "serving.noctaya.io/v1alpha1",
            "kind": "LLMService",
            "name": "chat",
            "uid": service["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        for kind, name in ((SCALED_OBJECTS, "chat"), (DEPLOYMENTS, "chat"), (PVCS, "chat-cache")):
            assert cluster.the(kind, name)["metadata"]["ownerReferences"] == [owner]
        await cluster.counted()
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []


async def test_l1_the_status_of_a_service_at_zero() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        status = cluster.status()
        times = {condition.pop("lastTransitionTime") for condition in status["conditions"]}
        assert all(time.startswith("2026-11-30T08:00:") for time in times)
        assert status == {
            "observedGeneration": 1,
            "phase": "ScaledToZero",
            "resolvedRuntime": "engine",
            "endpointURL": "http://chat.team.svc/v1",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ScaledToZero",
                    "message": "no replica runs; the next request starts one",
                    "observedGeneration": 1,
                },
                {
                    "type": "Degraded",
                    "status": "False",
                    "reason": "Inactive",
                    "message": "nothing runs that could fail",
                    "observedGeneration": 1,
                },
                {
                    "type": "AutoscalingReady",
                    "status": "True",
                    "reason": "ScaledObjectApplied",
                    "message": "ScaledObject chat is applied",
                    "observedGeneration": 1,
                },
            ],
        }


async def test_l2_settings_of_the_endpoint_reach_the_gateway() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.change(endpoint={"maxQueue": 7, "coldStart": {"mode": "reject"}})
        container = pod_of(cluster.the(DEPLOYMENTS, "chat-gateway"))["containers"][0]
        env = env_of(container)
        assert (env["NOCTAYA_MAX_QUEUE"], env["NOCTAYA_COLDSTART_MODE"]) == ("7", "reject")


async def test_l3_a_pull_failure_is_told_once_and_a_recovery_once() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.scale(1)
        await cluster.pod(waiting("ErrImagePull", message="manifest unknown"))
        assert cluster.status()["phase"] == "Degraded"
        assert cluster.condition("Ready") == ("False", "ImagePullFailed")
        assert cluster.condition("Degraded") == ("True", "ImagePullFailed")
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")
        failure = ("Warning", "ImagePullFailed", "ObserveBackendFailure")
        assert cluster.events() == [failure]

        version = cluster.the(LLM_SERVICES, "chat")["metadata"]["resourceVersion"]
        await cluster.pod(waiting("ErrImagePull", message="manifest unknown", restartCount=0))
        assert cluster.the(LLM_SERVICES, "chat")["metadata"]["resourceVersion"] == version
        assert cluster.events() == [failure]

        await cluster.scale(1, ready=1)
        await cluster.pod(running(ready=True))
        assert cluster.status()["phase"] == "Ready"
        assert cluster.status()["replicas"] == 1
        assert cluster.condition("Degraded") == ("False", "Healthy")
        recovery = ("Normal", "BackendRecovered", "ObserveBackendRecovery")
        assert set(cluster.events()) == {failure, recovery, ("Normal", "Activated", "ObserveActivation")}


async def test_l4_more_gateways_and_back() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.restart(gateways=2)
        selector = cluster.the(SERVICES, "chat-scaler")["spec"]["selector"]
        assert selector["serving.noctaya.io/scaler"] == "chat"
        assert cluster.the(DEPLOYMENTS, "chat-gateway")["spec"]["replicas"] == 2
        assert cluster.the(PDBS, "chat-gateway")["spec"]["minAvailable"] == 1
        cluster.the(DEPLOYMENTS, "chat-scaler")
        cluster.the(SECRETS, "chat-demand-auth")

        await cluster.user.patch_merge(PDBS, NAMESPACE, "chat-gateway", {"spec": {"minAvailable": 2}})
        await cluster.settle()
        assert cluster.the(PDBS, "chat-gateway")["spec"]["minAvailable"] == 1

        await cluster.restart(gateways=1)
        assert cluster.found(PDBS, "chat-gateway") is None
        assert cluster.found(DEPLOYMENTS, "chat-scaler") is None
        assert cluster.found(SECRETS, "chat-demand-auth") is None
        selector = cluster.the(SERVICES, "chat-scaler")["spec"]["selector"]
        assert selector["serving.noctaya.io/gateway"] == "chat"
        assert cluster.the(DEPLOYMENTS, "chat-gateway")["spec"]["replicas"] == 1


async def test_l4_a_foreign_object_under_an_obsolete_name_stays() -> None:
    async with Cluster() as cluster:
        cluster.server.put(secret())
        await cluster.idle_service()
        cluster.the(SECRETS, "chat-demand-auth")
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_l5_without_keda_nothing_is_made() -> None:
    async with Cluster(keda=False, gateways=2) as cluster:
        await cluster.service()
        assert cluster.condition("AutoscalingReady") == ("False", "AutoscalingUnavailable")
        assert cluster.status()["phase"] == "Degraded"
        assert cluster.names_of(DEPLOYMENTS) == []
        assert cluster.names_of(SECRETS) == []
        assert cluster.events() == []


async def test_l6_a_refused_scaled_object_is_told_with_its_step() -> None:
    def refuse(verb: str, resource: object, obj: Object) -> str | None:
        return "no ScaledObjects on Mondays" if obj["kind"] == "ScaledObject" else None

    async with Cluster() as cluster:
        cluster.server.admission.append(refuse)
        await cluster.idle_service()
        assert cluster.condition("AutoscalingReady") == ("False", "ApplyScaledObject")
        assert cluster.condition("Degraded") == ("True", "ApplyScaledObject")
        assert "no ScaledObjects on Mondays" in cluster.message("Ready")
        cluster.server.admission.clear()
        await cluster.settle(1200)
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")


async def test_l7_a_foreign_demand_secret_is_refused_before_anything_is_made() -> None:
    async with Cluster(gateways=2) as cluster:
        cluster.server.put(secret())
        await cluster.service()
        assert cluster.condition("Ready") == ("False", "NameConflict")
        assert "Secret team/chat-demand-auth" in cluster.message("Ready")
        assert cluster.names_of(DEPLOYMENTS) == []
        assert cluster.names_of(PVCS) == []
        cluster.server.remove(SECRETS, NAMESPACE, "chat-demand-auth")
        await cluster.settle(120)
        assert cluster.condition("Degraded") == ("False", "Progressing")


async def test_l8_an_own_secret_without_a_token_fails_closed() -> None:
    async with Cluster(gateways=2) as cluster:
        await cluster.idle_service()
        await cluster.user.patch_merge(
            SECRETS, NAMESPACE, "chat-demand-auth", {"data": {"token": "c2hvcnQ="}}
        )
        await cluster.change(endpoint={"maxQueue": 7})
        assert cluster.condition("Ready") == ("False", "DemandAuthentication")
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")
        env = env_of(pod_of(cluster.the(DEPLOYMENTS, "chat-gateway"))["containers"][0])
        assert env["NOCTAYA_MAX_QUEUE"] == "100"


async def test_l9_the_size_of_a_cache_can_not_change() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"strategy": "SharedPVC", "size": "20Gi"})
        await cluster.change(cache={"size": "30Gi"})
        assert cluster.condition("Ready") == ("False", "ApplyCachePVC")
        assert "size is 20Gi, wanted is 30Gi" in cluster.message("Ready")
        await cluster.change(cache={"size": "20480Mi"})
        assert cluster.condition("Ready") == ("False", "ScaledToZero")


async def test_l10_a_failed_download_degrades_the_service() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True})
        await cluster.job_is("Failed", message="disk full")
        assert cluster.status()["phase"] == "Degraded"
        assert cluster.condition("Degraded") == ("True", "PrewarmFailed")
        assert cluster.condition("Ready") == ("False", "PrewarmFailed")
        assert "disk full" in cluster.message("Ready")
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")


async def test_l11_a_conflict_is_retried_without_touching_anything_else() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        cluster.server.faults.fail(
            status=409, reason="Conflict", times=2, verb="update", resource=LLM_SERVICES
        )
        await cluster.user.patch_merge(
            LLM_SERVICES, NAMESPACE, "chat", {"metadata": {"annotations": {"team": "search"}}}
        )
        await cluster.scale(1)
        assert cluster.status()["phase"] == "Loading"
        assert cluster.the(LLM_SERVICES, "chat")["metadata"]["annotations"] == {"team": "search"}


async def test_l12_terminating_pods_are_not_looked_at() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.scale(1)
        going = pod(waiting("CrashLoopBackOff"), deletionTimestamp="2026-11-30T08:00:00Z")
        cluster.server.put(going)
        await cluster.pod(running(), name="chat-new")
        assert cluster.condition("Ready") == ("False", "ModelLoading")


async def test_l13_secrets_are_never_listed_or_watched() -> None:
    async with Cluster(gateways=2) as cluster:
        await cluster.idle_service()
        asked = {request.verb for request in cluster.server.requests if request.resource == SECRETS}
        assert asked == {"get", "create"}


async def test_s7_a_missing_runtime_degrades_until_it_appears() -> None:
    async with Cluster(runtime=False) as cluster:
        await cluster.service()
        assert cluster.status()["phase"] == "Degraded"
        assert cluster.condition("Ready") == ("False", "RuntimeResolution")
        assert cluster.condition("AutoscalingReady") == ("False", "RuntimeResolution")
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []
        cluster.server.put(raw_runtime())
        await cluster.settle()
        assert cluster.condition("Degraded") == ("False", "Progressing")


async def test_s8_a_changed_runtime_reaches_only_services_that_may_use_it() -> None:
    async with Cluster() as cluster:
        cluster.server.put(raw_runtime(name="other", vendor="ascend"))
        await cluster.idle_service()
        await cluster.idle_service(
            name="by-vendor", runtime={"name": None, "selector": {"vendor": ["nvidia"]}}
        )
        await cluster.idle_service(name="elsewhere", runtime={"name": "other"})
        cluster.forget_requests()
        await cluster.change_runtime("engine", container={"image": "example.com/engine:2"}, priority=5)
        changed = {request.name for request in cluster.writes() if request.resource == DEPLOYMENTS}
        assert changed == {"chat", "by-vendor"}


def secret(**metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": merged({"name": "chat-demand-auth", "namespace": NAMESPACE}, metadata),
        "data": {"token": "QQ=="},
    }
