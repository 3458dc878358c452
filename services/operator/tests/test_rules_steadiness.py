"""O6 to O11: prewarming, failures, and writing nothing without need."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster, running, waiting
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, JOBS

pytestmark = pytest.mark.looptime

PREWARMED: Object = {"cache": {"prewarm": True}}


async def test_o6_a_service_is_kept_at_zero_until_its_weights_are_there() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        paused = cluster.the(SCALED_OBJECTS, "chat")["metadata"]["annotations"]
        assert paused == {"autoscaling.keda.sh/paused-replicas": "0"}
        assert cluster.status()["phase"] == "Prewarming"
        assert cluster.status()["prewarm"] == {"state": "Pending"}
        assert cluster.condition("Ready") == ("False", "Prewarming")
        assert cluster.condition("AutoscalingReady") == ("True", "ScaledObjectApplied")
        await cluster.job_is("Complete")
        assert "annotations" not in cluster.the(SCALED_OBJECTS, "chat")["metadata"]
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.status()["prewarm"] == {"state": "Complete"}


async def test_o6_a_failed_download_does_not_hide_a_backend_that_serves() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.scale(1, ready=1)
        await cluster.change(**PREWARMED)
        assert cluster.status()["phase"] == "Ready"
        assert "annotations" not in cluster.the(SCALED_OBJECTS, "chat")["metadata"]
        await cluster.job_is("Failed")
        assert cluster.condition("Ready") == ("True", "Available")
        assert cluster.condition("Degraded") == ("True", "PrewarmFailed")


async def test_o6_a_new_image_does_not_invalidate_the_weights() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.job_is("Complete")
        job = cluster.the(JOBS, "chat-prewarm")
        await cluster.change_runtime(container={"image": "example.com/engine:2"})
        assert cluster.the(JOBS, "chat-prewarm")["metadata"]["uid"] == job["metadata"]["uid"]
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_o7_failures_are_forgotten_when_the_pod_is_ready() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.scale(1)
        await cluster.pod(waiting("CrashLoopBackOff", restartCount=5))
        assert cluster.condition("Degraded") == ("True", "CrashLoopBackOff")
        await cluster.pod(running(ready=True, restartCount=5))
        await cluster.scale(1, ready=1)
        assert cluster.condition("Degraded") == ("False", "Healthy")


async def test_o7_a_quota_shows() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        refused = {
            "type": "ReplicaFailure",
            "status": "True",
            "reason": "FailedCreate",
            "message": 'pods "chat-1" is forbidden: exceeded quota: small',
        }
        await cluster.scale(1, conditions=[refused])
        assert cluster.condition("Degraded") == ("True", "QuotaExceeded")
        assert cluster.status()["phase"] == "Degraded"


async def test_o7_a_download_that_can_not_begin_is_told() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        job = cluster.the(JOBS, "chat-prewarm")
        job["metadata"]["creationTimestamp"] = "2026-11-30T08:00:00Z"
        cluster.server.put(job)
        refused = 'pods "chat-prewarm-x" is forbidden: exceeded quota: small'
        cluster.server.put(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": "chat-prewarm.1", "namespace": NAMESPACE},
                "reason": "FailedCreate",
                "note": refused,
                "regarding": {"kind": "Job", "name": "chat-prewarm", "uid": job["metadata"]["uid"]},
            }
        )
        await cluster.settle(60)
        assert cluster.status()["phase"] == "Prewarming"
        assert "can't create its Pod: exceeded quota: small" in cluster.message("Ready")
        await cluster.job_is("Complete")
        assert cluster.status()["prewarm"] == {"state": "Complete"}
        cluster.forget_requests()
        await cluster.settle(600)
        assert [each for each in cluster.server.requests if each.verb not in {"list", "watch"}] == []


async def test_o9_another_spelling_of_the_same_quantity_is_no_change() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(resources={"memory": "2Gi"})
        await cluster.counted()
        cluster.forget_requests()
        generation = cluster.the(DEPLOYMENTS, "chat")["metadata"]["generation"]
        await cluster.change(resources={"memory": "2048Mi"})
        assert cluster.the(DEPLOYMENTS, "chat")["metadata"]["generation"] == generation
        assert {each.resource for each in cluster.writes()} == {LLM_SERVICES}


async def test_o9_a_restart_writes_nothing() -> None:
    async with Cluster(gateways=2) as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.counted()
        cluster.forget_requests()
        await cluster.restart()
        await cluster.settle(300)
        assert cluster.writes() == []


async def test_o9_the_first_convergence_takes_at_most_twelve_writes() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        mine = [
            each
            for each in cluster.writes()
            if each.resource.kind not in {"InferenceRuntime", "EndpointSlice"}
        ]
        # One of them is the user's creation of the service.
        assert len(mine) - 1 <= 12


async def test_o9_a_webhook_that_insists_is_not_fought() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        original = cluster.server.api.writer._finish

        def insisting(target: object, live: Object, new: Object) -> Object:
            if new["kind"] == "Deployment":
                for container in new["spec"]["template"]["spec"]["containers"]:
                    container["image"] = "mirror.example.com/" + container["image"].rpartition("/")[2]
            return original(target, live, new)  # type: ignore[arg-type]

        cluster.server.api.writer._finish = insisting  # type: ignore[method-assign]
        cluster.forget_requests()
        await cluster.change(resources={"cpu": "2"})
        await cluster.settle(600)
        written = [each for each in cluster.writes() if each.resource == DEPLOYMENTS]
        assert len(written) <= 3
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_o9_a_field_that_is_no_longer_wanted_goes_away() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(resources={"cpu": "2"}, endpoint={"coldStart": {"heartbeats": False}})
        await cluster.change(resources={"cpu": None}, endpoint={"coldStart": {"heartbeats": None}})
        engine = cluster.the(DEPLOYMENTS, "chat")["spec"]["template"]["spec"]["containers"][0]
        assert "cpu" not in engine["resources"].get("requests", {})
        gateway = cluster.the(DEPLOYMENTS, "chat-gateway")["spec"]["template"]["spec"]["containers"][0]
        assert "NOCTAYA_HEARTBEATS" not in [entry["name"] for entry in gateway["env"]]


async def test_o11_replicas_that_must_share_a_node_are_told() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(scaling={"max": 3})
        assert "3 replicas share the claim chat-cache" in cluster.message("AutoscalingReady")


async def test_o9_a_changed_backend_costs_one_write_and_is_not_read_anew() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        # What creation left over is given up once.
        await cluster.change_runtime(container={"image": "example.com/engine:2"})
        cluster.forget_requests()
        await cluster.change_runtime(container={"image": "example.com/engine:3"})
        asked = [each.verb for each in cluster.server.requests if each.resource == DEPLOYMENTS]
        assert asked == ["patch"]
        assert "engine:3" in str(cluster.the_deployment()["spec"])
