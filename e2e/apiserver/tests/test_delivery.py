"""Model delivery against a real API server with its Job controller and garbage collector."""

from __future__ import annotations

from noctaya_apiserver import ApiClient, wait_for
from noctaya_apiserver.client import Object
from noctaya_apiserver.world import World, condition_of

JOBS, CLAIMS = "batch/v1/jobs", "v1/persistentvolumeclaims"
DEPLOYMENTS = "apps/v1/deployments"


def args_of(world: World, kind: str, name: str) -> list[str]:
    pod = world.await_object(kind, name)["spec"]["template"]["spec"]
    found: list[str] = pod["containers"][0]["args"]
    return found


def storage_class(api: ApiClient, name: str) -> None:
    api.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "example.com/none",
            "allowVolumeExpansion": True,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


def bound(world: World, name: str) -> None:
    """What a provisioner does."""
    claim = world.await_object(CLAIMS, name)
    size = claim["spec"]["resources"]["requests"]["storage"]
    volume = f"{world.namespace}-{name}"
    world.api.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": claim["spec"]["storageClassName"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": world.namespace, "name": name, "uid": claim["metadata"]["uid"]},
                "csi": {"driver": "example.com", "volumeHandle": volume},
            },
        }
    )
    path = f"/api/v1/namespaces/{world.namespace}/persistentvolumeclaims/{name}"
    world.api.merge(path, {"spec": {"volumeName": volume}})
    world.api.merge(f"{path}/status", {"status": {"phase": "Bound", "capacity": {"storage": size}}})


def test_a_prewarmed_model_is_a_directory_that_job_and_engine_agree_on(world: World) -> None:
    world.create(cache={"prewarm": True})
    # The Job may be seen complete a moment before the node of its Pod is.
    status = world.await_status(
        lambda found: found.get("phase") == "ScaledToZero" and "node" in found.get("prewarm", {})
    )
    assert status["prewarm"]["state"] == "Complete"
    target = args_of(world, JOBS, "chat-prewarm")[4]
    assert target.startswith("/cache/models/hf-")
    assert args_of(world, DEPLOYMENTS, "chat")[0] == target


def test_a_changed_model_is_refused_and_with_the_wish_replaced(world: World) -> None:
    world.create(cache={"prewarm": True})
    world.await_phase("ScaledToZero")
    former = world.await_object(JOBS, "chat-prewarm")["metadata"]["uid"]
    world.change(model={"source": {"uri": "hf://org/other"}})
    world.await_condition("Degraded", "True", "ApplyPrewarmJob")
    world.change(cache={"prewarm": True, "replace": True})
    status = world.await_phase("ScaledToZero")
    assert condition_of(status, "Degraded") == ("False", "Inactive")
    job = world.await_object(JOBS, "chat-prewarm")
    assert job["metadata"]["uid"] != former
    assert "hf://org/other" in args_of(world, JOBS, "chat-prewarm")
    assert args_of(world, DEPLOYMENTS, "chat")[0] == args_of(world, JOBS, "chat-prewarm")[4]


def test_a_claim_grows_and_what_can_not_follow_is_replaced_with_its_download(world: World) -> None:
    storage_class(world.api, "elastic")
    storage_class(world.api, "other")
    world.create(cache={"prewarm": True, "size": "1Gi", "storageClassName": "elastic"})
    world.await_phase("ScaledToZero")
    bound(world, "chat-cache")
    world.change(cache={"size": "2Gi"})
    wait_for(
        lambda: size_of(world) == "2Gi",
        what="a larger claim",
    )
    world.await_condition("Degraded", "False", "Inactive")
    claim = world.await_object(CLAIMS, "chat-cache")["metadata"]["uid"]
    world.change(cache={"storageClassName": "other", "replace": True})

    def anew() -> bool:
        found = world.get(CLAIMS, "chat-cache")
        return found is not None and found["metadata"]["uid"] != claim

    wait_for(anew, what="another claim")
    status = world.await_phase("ScaledToZero")
    assert condition_of(status, "Degraded") == ("False", "Inactive")
    assert world.await_object(CLAIMS, "chat-cache")["spec"]["storageClassName"] == "other"


def size_of(world: World) -> str:
    found: Object = world.await_object(CLAIMS, "chat-cache")["spec"]["resources"]["requests"]
    return str(found["storage"])


def test_two_services_share_a_claim_that_neither_owns(world: World) -> None:
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "models", "namespace": world.namespace},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    shared = {"strategy": "SharedPVC", "claimName": "models", "prewarm": True}
    for name in ("one", "two"):
        world.create(name, cache=shared)
        world.await_phase("ScaledToZero", name)
    assert args_of(world, JOBS, "one-prewarm") == args_of(world, JOBS, "two-prewarm")
    assert args_of(world, DEPLOYMENTS, "one")[0] == args_of(world, DEPLOYMENTS, "two")[0]
    world.delete("one")
    world.await_gone(JOBS, "one-prewarm")
    assert world.await_object(CLAIMS, "models")["metadata"].get("deletionTimestamp") is None


def test_every_kind_of_source_is_taken_by_the_api_server(world: World) -> None:
    digest = "0123456789abcdef" * 4
    sources = {
        "hub": {"uri": "hf://org/model@v1", "secretRef": {"name": "hub"}, "files": {"exclude": ["*.bin"]}},
        "bucket": {
            "uri": "s3://bucket/model",
            "endpoint": "http://minio:9000",
            "region": "eu-west-1",
            "secretRef": {"name": "bucket"},
        },
        "artifact": {"uri": f"oci://registry/model@sha256:{digest}", "secretRef": {"name": "pull"}},
        "scope": {"uri": "modelscope://org/model", "endpoint": "https://mirror.example.com"},
    }
    for name, source in sources.items():
        world.create(name, model={"source": source}, cache={"prewarm": True, "prewarmTimeout": "1h"})
    for name in sources:
        status = world.await_phase("ScaledToZero", name)
        assert condition_of(status, "Degraded") == ("False", "Inactive"), name
