"""What a scenario of model delivery looks at: the download in the status, the files as a server sees them."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any, Final

from noctaya_api import names

from noctaya_scenarios.access import Access
from noctaya_scenarios.scene import Scene

Object = dict[str, Any]

MIB: Final = 1 << 20
SHARED: Final = {
    "strategy": "SharedPVC",
    "storageClassName": "noctaya-shared",
    "size": "1Gi",
    "prewarm": True,
}
"""A cache that a download fills and servers read."""
_HASHES: Final = """
import hashlib, json, pathlib, sys
root = pathlib.Path(sys.argv[1])
files = [path for path in root.rglob("*") if path.is_file()]
hashes = {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
print(json.dumps(hashes))
"""


def pattern_sha256(*, size: int, seed: int) -> str:
    """SHA-256 of what the stand-in serves for a file of this size and seed."""
    block = random.Random(seed).randbytes(MIB)
    digest = hashlib.sha256()
    for number in range(-(-size // MIB)):
        piece = number.to_bytes(8, "big") + block[8:]
        digest.update(piece[: size - number * MIB])
    return digest.hexdigest()


def served_files(access: Access, scene: Scene, *, within: float = 60.0) -> dict[str, str]:
    """SHA-256 by path of every file that the serving container has as its model, but the marker."""
    (pod,) = scene.ready_pods("backend")
    root = model_path(scene)
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


def job_pods(scene: Scene, name: str = "chat") -> list[Object]:
    """Pods of the download."""
    label = f"batch.kubernetes.io/job-name={name}-prewarm"
    return scene.api.items(f"/api/v1/namespaces/{scene.namespace}/pods", labelSelector=label)


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
