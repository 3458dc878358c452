"""What a scenario of model delivery looks at: the download in the status, the files as a server sees them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any, Final

from noctaya_api import names

from noctaya_scenarios import manifests
from noctaya_scenarios.access import Access
from noctaya_scenarios.scene import Scene

Object = dict[str, Any]

MIB: Final = 1 << 20
DELIVERY_SECONDS: Final = 240.0
"""For weights to be there; a pod of the download that failed is started again after up to 40 s."""
SHARED: Final = {
    "strategy": "SharedPVC",
    "storageClassName": "noctaya-shared",
    "size": "1Gi",
    "prewarm": True,
}
"""A cache that a download fills and servers read."""
STAYS: Final = {"scaleDownStabilization": "2m"}
"""Scaling of a service whose files are looked at after an answer, for as long as that takes."""
_HASHES: Final = """
import hashlib, json, pathlib, sys
root = pathlib.Path(sys.argv[1])
files = [path for path in root.rglob("*") if path.is_file()]
hashes = {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
print(json.dumps(hashes))
"""


def model(*, size: int, seed: int) -> dict[str, Any]:
    """A model of one large file and a small one, as the stand-in takes it."""
    return {"config.json": "{}", "model.safetensors": {"size": size, "seed": seed}}


def hashes_of(files: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 by path of a model's files."""
    return {
        path: hashlib.sha256(content.encode()).hexdigest()
        if isinstance(content, str)
        else pattern_sha256(**content)
        for path, content in files.items()
    }


def pattern_sha256(*, size: int, seed: int) -> str:
    """SHA-256 of what the stand-in serves for a file of this size and seed."""
    block = random.Random(seed).randbytes(MIB)
    digest = hashlib.sha256()
    for number in range(-(-size // MIB)):
        piece = number.to_bytes(8, "big") + block[8:]
        digest.update(piece[: size - number * MIB])
    return digest.hexdigest()


def served_files(access: Access, scene: Scene, name: str = "chat", *, within: float = 60.0) -> dict[str, str]:
    """SHA-256 by path of every file that the serving container has as its model, but the marker."""
    (pod,) = scene.ready_pods("backend", name)
    root = model_path(scene, name)
    command = ["python3", "-c", _HASHES, root]
    told = access.kubectl(
        "-n", scene.namespace, "exec", pod, "-c", names.CONTAINER_SERVING, "--", *command, within=within
    )
    found: dict[str, str] = json.loads(told)
    assert found.pop(names.READY_MARKER), "the marker lies beside the files"
    return found


def model_path(scene: Scene, name: str = "chat") -> str:
    """What the backend's server is pointed to."""
    deployment = scene.await_object("apps/v1/deployments", name)
    (serving,) = deployment["spec"]["template"]["spec"]["containers"]
    path: str = serving["args"][0]
    return path


def prewarm_of(scene: Scene, name: str = "chat") -> Object:
    """The download as the status tells of it; empty before there is one."""
    found: Object = scene.status(name).get("prewarm") or {}
    return found


def await_told(scene: Scene, *, reason: str = "", message: str = "", name: str = "chat") -> Object:
    """Wait until the status tells of a download that failed, in these words."""

    def look() -> Object | None:
        found = prewarm_of(scene, name)
        right = reason in {"", found.get("reason")} and message in found.get("message", "")
        return found if found.get("message") and right else None

    told = scene.until(
        look,
        within=DELIVERY_SECONDS,
        what=f"the status of {name} tells of {reason or message or 'a failure'}",
    )
    assert told is not None
    return told


def await_bytes(scene: Scene, name: str = "chat") -> Object:
    """Wait until the status tells how far a download is that runs."""

    def look() -> Object | None:
        found = prewarm_of(scene, name)
        return found if found.get("state") == "Running" and found.get("bytesDone", 0) > 0 else None

    told = scene.until(
        look, within=DELIVERY_SECONDS, what=f"bytes of the running download of {name} in the status"
    )
    assert told is not None
    return told


def paused_at_zero(scene: Scene, name: str = "chat") -> bool:
    """Whether the autoscaler is told to keep the service at no replicas."""
    annotations = scene.scaled_object(name)["metadata"].get("annotations") or {}
    return bool(annotations.get(names.ANNOTATION_KEDA_PAUSED_REPLICAS) == "0")


def nothing_runs(scene: Scene, name: str = "chat") -> bool:
    """Whether the service is kept at zero without a Pod, and its download asks for no accelerator."""
    wanted = accelerators_of(job_pods(scene, name))
    return paused_at_zero(scene, name) and not scene.pods("backend", name) and not wanted


def await_paused(scene: Scene, name: str = "chat", *, within: float = DELIVERY_SECONDS) -> None:
    """Wait until there is an autoscaler, and it is paused at zero."""
    scene.until(
        lambda: scene.get("keda.sh/v1alpha1/scaledobjects", name) is not None and paused_at_zero(scene, name),
        within=within,
        what=f"the ScaledObject of {name} is paused at zero",
    )


def job_pods(scene: Scene, name: str = "chat") -> list[Object]:
    """Pods of the download."""
    label = f"batch.kubernetes.io/job-name={name}-prewarm"
    return scene.api.items(f"/api/v1/namespaces/{scene.namespace}/pods", labelSelector=label)


def give_up(scene: Scene, name: str = "chat") -> None:
    """Have Kubernetes end the Job of a download now, as it does after the last attempt."""
    path = f"/apis/batch/v1/namespaces/{scene.namespace}/jobs/{name}-prewarm"
    scene.api.merge(path, {"spec": {"activeDeadlineSeconds": 1}})


def accelerators_of(pods: list[Object]) -> list[str]:
    """Accelerators that Pods ask for."""
    return [
        container["resources"]["limits"][manifests.ACCELERATOR]
        for pod in pods
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        if manifests.ACCELERATOR in (container.get("resources") or {}).get("limits", {})
    ]


def everything_told(scene: Scene, name: str = "chat") -> str:
    """Service, Job, Pods, Events and the logs of the download, as one text."""
    pods = job_pods(scene, name)
    kept = {key: item for key, item in scene.objects(of=name).items() if not key.startswith("secrets/")}
    texts = [json.dumps(part) for part in (scene.api.get(scene.path(name)), scene.events(name), kept, pods)]
    texts += [
        scene.log(pod["metadata"]["name"], container["name"])
        for pod in pods
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    ]
    return "\n".join(texts)
