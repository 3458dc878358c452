"""Model delivery as a whole service lives it: progress, failure, replacement, sharing, resolved tags."""

from __future__ import annotations

import json

import pytest
from cluster import NAMESPACE, Cluster, running
from noctaya_operator.kinds import SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, JOBS, PODS, PVCS, STORAGE_CLASSES
from samples import DIGEST, pod_of

pytestmark = pytest.mark.looptime

PREWARMED: Object = {"cache": {"prewarm": True}}
PAUSED = {"autoscaling.keda.sh/paused-replicas": "0"}
URL = "http://10.0.0.7:8080/progress"
RUNNING = {**running(container="prewarm"), "phase": "Running", "podIP": "10.0.0.7"}


def ended(said: Object, *, code: int = 0) -> Object:
    state = {
        "terminated": {"exitCode": code, "message": json.dumps(said), "finishedAt": "2026-11-30T08:05:00Z"}
    }
    container = {"name": "prewarm", "state": {}, "lastState": state, "ready": False}
    return {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [container]}


def progress(done: int, **more: object) -> bytes:
    return json.dumps({"bytesDone": done, "bytesTotal": 16106127360, **more}).encode()


def pauses(cluster: Cluster) -> Object:
    found: Object = cluster.the(SCALED_OBJECTS, "chat")["metadata"].get("annotations") or {}
    return found


def path_of(cluster: Cluster) -> str:
    return str(pod_of(cluster.the_deployment())["containers"][0]["args"][0])


def collected(cluster: Cluster, kind: object, name: str) -> None:
    """Garbage collection: what was asked to go is gone."""
    assert cluster.the(kind, name)["metadata"].get("deletionTimestamp")  # type: ignore[arg-type]
    cluster.server.remove(kind, NAMESPACE, name)  # type: ignore[arg-type]


@pytest.mark.parametrize("ready", [False, True], ids=["begun", "a Pod without a probe is ready at once"])
async def test_m6_what_the_agent_answers_shows_within_seconds(ready: bool) -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        cluster.progress[URL] = progress(
            1610612736, bytesPerSecond=104857600, currentFile="a", etaSeconds=138, attempt=1
        )
        conditions = [{"type": "Ready", "status": str(ready)}]
        await cluster.prewarm_pod({**RUNNING, "conditions": conditions})
        assert cluster.status()["prewarm"] == {
            "state": "Running",
            "bytesDone": 1610612736,
            "bytesTotal": 16106127360,
            "bytesPerSecond": 104857600,
            "currentFile": "a",
            "etaSeconds": 138,
            "attempt": 1,
            "node": "node-1",
        }
        assert "1.5 GiB of 15.0 GiB downloaded, about 3 min left" in cluster.message("Ready")
        cluster.progress[URL] = progress(8053063680)
        await cluster.settle(6)
        assert cluster.status()["prewarm"]["bytesDone"] == 8053063680


async def test_m6_an_artifact_that_is_pulled_shows_too() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(uri=f"oci://registry.example.com/models/tiny@sha256:{DIGEST}")
        beside = {"name": "pull-progress", "state": {"running": {}}}
        waiting = {"phase": "Pending", "podIP": "10.0.0.7"}
        pull = {"name": "pull-oci-model", "state": {"waiting": {"reason": "PodInitializing"}}}
        cluster.progress["http://10.0.0.7:8081/progress"] = progress(1610612736)
        await cluster.prewarm_pod({**waiting, "initContainerStatuses": [beside, pull]})
        assert cluster.status()["prewarm"]["state"] == "Pending", "what is beside it pulls nothing"
        pull["state"] = {"running": {}}
        await cluster.prewarm_pod({**waiting, "initContainerStatuses": [beside, pull]})
        told = cluster.status()["prewarm"]
        assert (told["state"], told["bytesDone"], told["bytesTotal"]) == ("Running", 1610612736, 16106127360)
        cluster.progress[URL] = progress(16106127360)
        await cluster.prewarm_pod({**RUNNING, "initContainerStatuses": [beside]})
        assert cluster.status()["prewarm"]["bytesDone"] == 16106127360


async def test_m6_an_agent_that_can_not_be_reached_is_asked_less_and_less_and_no_pass_waits_for_it() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.prewarm_pod(RUNNING)
        assert cluster.status()["phase"] == "Prewarming"
        cluster.forget_requests()
        cluster.asked.clear()
        await cluster.settle(600)
        assert 9 <= len(cluster.asked) <= 14
        assert cluster.writes() == []


async def test_m6_nobody_is_asked_after_the_end() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        cluster.progress[URL] = progress(1)
        await cluster.prewarm_pod(RUNNING)
        await cluster.job_is("Complete")
        cluster.asked.clear()
        await cluster.settle(120)
        assert cluster.asked == []


async def test_o6_a_failure_is_told_in_the_agents_words_and_then_the_engine_helps_itself() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        assert path_of(cluster).startswith("/cache/models/hf-")
        await cluster.prewarm_pod(ended({"message": "org/model needs a token", "code": 10}, code=10))
        assert cluster.status()["phase"] == "Prewarming"
        assert "org/model needs a token" in cluster.message("Ready")
        cluster.server.remove(PODS, NAMESPACE, "chat-prewarm-x")
        await cluster.job_is("Failed", message="BackoffLimitExceeded")
        assert cluster.condition("Degraded") == ("True", "PrewarmFailed")
        assert "org/model needs a token" in cluster.message("Degraded")
        assert path_of(cluster) == "org/model"
        assert pauses(cluster) == {}


async def test_o6_weights_that_are_needed_hold_the_service_also_after_a_failure() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "strategy": "SharedPVC"})
        await cluster.job_is("Failed")
        assert pauses(cluster) == PAUSED
        assert cluster.condition("Ready") == ("False", "PrewarmFailed")


async def test_o6_weights_that_are_needed_are_tried_again_by_themselves() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "strategy": "SharedPVC"})
        await cluster.job_is("Failed", at=cluster.now())
        assert cluster.condition("Ready") == ("False", "PrewarmFailed")
        cluster.forget_requests()
        await cluster.settle(20)
        assert cluster.writes() == [], "a pause comes first"
        await cluster.settle(20)
        collected(cluster, JOBS, "chat-prewarm")
        await cluster.settle()
        assert cluster.status()["phase"] == "Prewarming"
        assert pauses(cluster) == PAUSED
        await cluster.job_is("Complete")
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_o6_an_address_put_right_after_a_failure_needs_nothing_else() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.job_is("Failed", at=cluster.now())
        await cluster.change(model={"source": {"uri": "hf://org/other"}})
        collected(cluster, JOBS, "chat-prewarm")
        await cluster.settle()
        args = pod_of(cluster.the(JOBS, "chat-prewarm"))["containers"][0]["args"]
        assert args[args.index("--source") + 1] == "hf://org/other"
        assert cluster.status()["phase"] == "Prewarming"


async def test_a_job_deleted_to_try_again_is_made_anew_without_a_false_alarm() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "strategy": "SharedPVC"})
        await cluster.job_is("Failed")
        await cluster.user.delete(JOBS, NAMESPACE, "chat-prewarm", propagation="Foreground")
        await cluster.settle()
        assert cluster.condition("Degraded") == ("False", "Progressing")
        collected(cluster, JOBS, "chat-prewarm")
        await cluster.settle()
        assert cluster.status()["phase"] == "Prewarming"
        await cluster.job_is("Complete")
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_a_changed_model_is_refused_without_the_wish_to_replace() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.job_is("Complete")
        before = path_of(cluster)
        await cluster.change(model={"source": {"uri": "hf://org/other"}})
        assert cluster.condition("Degraded") == ("True", "ApplyPrewarmJob")
        assert "set cache.replace" in cluster.message("Degraded")
        assert path_of(cluster) == before


async def test_a_changed_model_is_replaced_at_zero_with_the_service_held() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "replace": True})
        await cluster.job_is("Complete")
        assert pauses(cluster) == {}
        former = path_of(cluster)
        await cluster.change(model={"source": {"uri": "hf://org/other"}})
        assert pauses(cluster) == PAUSED
        assert cluster.status()["phase"] == "Prewarming"
        assert cluster.condition("Degraded") == ("False", "Progressing")
        collected(cluster, JOBS, "chat-prewarm")
        await cluster.settle()
        args = pod_of(cluster.the(JOBS, "chat-prewarm"))["containers"][0]["args"]
        assert args[args.index("--source") + 1] == "hf://org/other"
        assert "--prune" in args
        await cluster.job_is("Complete")
        assert pauses(cluster) == {}
        assert path_of(cluster) not in {former, "org/other"}


async def test_o6_a_model_that_serves_goes_on_until_the_next_ones_weights_are_there() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "replace": True})
        await cluster.job_is("Complete")
        await cluster.scale(1, ready=1)
        former = path_of(cluster)
        await cluster.change(model={"source": {"uri": "hf://org/other"}})
        collected(cluster, JOBS, "chat-prewarm")
        await cluster.settle()
        args = pod_of(cluster.the(JOBS, "chat-prewarm"))["containers"][0]["args"]
        # What serves may still read the former weights.
        assert "--prune" not in args
        assert (cluster.status()["phase"], path_of(cluster)) == ("Ready", former)
        assert pauses(cluster) == {}
        await cluster.job_is("Failed")
        assert (cluster.status()["phase"], path_of(cluster)) == ("Ready", former)
        assert cluster.condition("Degraded") == ("True", "PrewarmFailed")
        await cluster.user.delete(JOBS, NAMESPACE, "chat-prewarm")
        await cluster.settle()
        await cluster.job_is("Complete")
        assert path_of(cluster) != former


async def test_a_claim_that_can_not_follow_is_replaced_once_nothing_runs() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"prewarm": True, "replace": True})
        await cluster.job_is("Complete")
        await cluster.scale(1, ready=1)
        await cluster.change(cache={"storageClassName": "fast"})
        assert cluster.status()["phase"] == "Ready"
        assert "is replaced once no replica runs" in cluster.message("AutoscalingReady")
        assert "deletionTimestamp" not in cluster.the(PVCS, "chat-cache")["metadata"]
        await cluster.scale(0)
        collected(cluster, JOBS, "chat-prewarm")
        if cluster.found(PVCS, "chat-cache") is not None and cluster.the(PVCS, "chat-cache")["metadata"].get(
            "deletionTimestamp"
        ):
            collected(cluster, PVCS, "chat-cache")
        await cluster.settle()
        assert cluster.the(PVCS, "chat-cache")["spec"]["storageClassName"] == "fast"
        assert cluster.status()["phase"] == "Prewarming"
        assert pauses(cluster) == PAUSED
        await cluster.job_is("Complete")
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_a_claim_grows_with_the_service_where_its_class_lets_it() -> None:
    async with Cluster() as cluster:
        cluster.server.put(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "elastic"},
                "allowVolumeExpansion": True,
            }
        )
        await cluster.idle_service(cache={"size": "10Gi", "storageClassName": "elastic"})
        cluster.server.set_status(PVCS, NAMESPACE, "chat-cache", {"phase": "Bound"})
        await cluster.change(cache={"size": "20Gi"})
        claim = cluster.the(PVCS, "chat-cache")
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
        assert cluster.condition("Degraded") == ("False", "Inactive")
        cluster.forget_requests()
        await cluster.change(cache={"size": "15Gi"})
        assert cluster.condition("Degraded") == ("True", "ApplyCachePVC")
        cluster.server.remove(STORAGE_CLASSES, "", "elastic")


async def test_a_tag_is_resolved_once_and_the_service_keeps_to_its_digest() -> None:
    uri = "oci://registry.example.com/tiny:v1"
    digest = f"sha256:{DIGEST}"
    async with Cluster() as cluster:
        await cluster.idle_service(uri=uri, model={"source": {"allowTags": True}})
        args = pod_of(cluster.the(JOBS, "chat-prewarm"))["initContainers"][0]["args"]
        assert "registry.example.com/tiny:v1" in args
        await cluster.prewarm_pod({**ended({"digest": digest}), "phase": "Succeeded"})
        await cluster.job_is("Complete")
        assert cluster.status()["model"] == {"uri": uri, "digest": digest}
        assert path_of(cluster) == f"/cache/oci/sha256-{DIGEST}"
        assert pauses(cluster) == {}
        cluster.server.remove(PODS, NAMESPACE, "chat-prewarm-x")
        await cluster.restart()
        assert path_of(cluster) == f"/cache/oci/sha256-{DIGEST}"
        # The weights are brought again, and again the same ones.
        await cluster.user.delete(JOBS, NAMESPACE, "chat-prewarm")
        await cluster.settle()
        args = pod_of(cluster.the(JOBS, "chat-prewarm"))["initContainers"][0]["args"]
        assert f"registry.example.com/tiny@{digest}" in args


async def test_a_tag_that_the_download_did_not_resolve_starts_nothing() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(
            uri="oci://registry.example.com/tiny:v1", model={"source": {"allowTags": True}}
        )
        await cluster.job_is("Complete")
        assert pauses(cluster) == PAUSED
        assert cluster.status()["phase"] == "Prewarming"
        assert "delete the Job" in cluster.message("Ready")


async def test_a_hubs_commit_is_kept_in_the_status() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(**PREWARMED)
        await cluster.prewarm_pod({**ended({"revision": "0123abc"}), "phase": "Succeeded"})
        await cluster.job_is("Complete")
        assert cluster.status()["model"] == {"uri": "hf://org/model", "revision": "0123abc"}


SHARED: Object = {"cache": {"strategy": "SharedPVC", "claimName": "models", "prewarm": True}}


def foreign_claim(*modes: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": NAMESPACE},
        "spec": {"accessModes": list(modes), "resources": {"requests": {"storage": "1Ti"}}},
    }


async def test_two_services_share_one_claim_and_one_directory() -> None:
    async with Cluster() as cluster:
        cluster.server.put(foreign_claim("ReadWriteMany"))
        for name in ("one", "two"):
            await cluster.idle_service(name=name, **SHARED)
        jobs = [pod_of(cluster.the(JOBS, f"{name}-prewarm")) for name in ("one", "two")]
        assert jobs[0]["containers"][0]["args"] == jobs[1]["containers"][0]["args"]
        assert cluster.names_of(PVCS) == ["models"]
        assert "ownerReferences" not in cluster.the(PVCS, "models")["metadata"]


@pytest.mark.parametrize(
    ("claim", "why"),
    [(None, "there is no PersistentVolumeClaim team/models"), (("ReadWriteOnce",), "ReadWriteOnce")],
)
async def test_a_claim_that_can_not_be_shared_is_refused_until_it_can(
    claim: tuple[str, ...] | None, why: str
) -> None:
    async with Cluster() as cluster:
        if claim is not None:
            cluster.server.put(foreign_claim(*claim))
        await cluster.service(**SHARED)
        assert cluster.condition("Degraded") == ("True", "Cache")
        assert why in cluster.message("Degraded")
        assert cluster.found(DEPLOYMENTS, "chat") is None
        cluster.server.put(foreign_claim("ReadWriteMany"))
        await cluster.settle(70)
        assert cluster.found(DEPLOYMENTS, "chat") is not None
