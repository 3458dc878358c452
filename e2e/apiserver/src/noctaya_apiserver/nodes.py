"""Stand-in for scheduler and kubelet: binds Pods to a node and says what becomes of them. Nothing runs.

What a Pod does is told by the image of its first container: `.../missing:1` can't be pulled, `.../slow:1`
runs and gets ready when it is told to, `.../unschedulable:1` finds no node, `.../crash:1` crashes again and
again. Pods of Jobs succeed. Everything else is ready at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from .client import Object

NODE: Final = "node-a"


class FakeNode:
    """What to do with each Pod; give `seen` to a Follower of `/api/v1/pods`."""

    def __init__(self, request: Callable[..., object]) -> None:
        self._request = request
        self._addresses = itertools.count(2)

    def register(self) -> None:
        """Make the Node object and a default StorageClass."""
        node: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
        }
        self._request("POST", "/api/v1/nodes", node)
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        storage: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": default},
            "provisioner": "example.com/none",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        self._request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage)

    def seen(self, pod: Object) -> None:
        """One step towards the Pod's fate."""
        metadata, spec = pod["metadata"], pod["spec"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            if spec.get("nodeName"):
                self._request("DELETE", path, {"gracePeriodSeconds": 0})
            return
        fate = fate_of(pod)
        if fate == "unschedulable":
            if not pod["status"].get("conditions"):
                self._report(path, _unschedulable())
        elif not spec.get("nodeName"):
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            }
            self._request("POST", f"{path}/binding", binding)
        elif "podIP" not in pod["status"]:
            address = self.address(pod)
            placed = {"podIP": address, "podIPs": [{"ip": address}], "hostIP": "10.0.0.1"}
            self._report(path, {**_status(pod, fate), **placed})

    def address(self, pod: Object) -> str:
        """The address that a Pod gets; one of its own, behind which nothing is."""
        high, low = divmod(next(self._addresses), 250)
        return f"10.244.{high % 250}.{low + 2}"

    def loaded(self, pod: Object) -> None:
        """A slow Pod, as it is now, gets ready after all."""
        metadata, status = pod["metadata"], pod["status"]
        over = {"ready": True, "started": True}
        ready = {
            "containerStatuses": [{**each, **over} for each in status["containerStatuses"]],
            "conditions": [
                each if each["status"] == "True" else _condition(each["type"], True)
                for each in status["conditions"]
            ],
        }
        self._report(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", ready)

    def _report(self, path: str, status: Object) -> None:
        self._request(
            "PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json"
        )


def fate_of(pod: Object) -> str:
    """The last part of the image's name, where it is one of those with a meaning; else `ready`."""
    image = str(pod["spec"]["containers"][0]["image"]).rpartition("/")[2].partition(":")[0]
    if image in {"missing", "slow", "unschedulable", "crash"}:
        return image
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return "succeeded" if owners[0].get("kind") == "Job" else "ready"


def _status(pod: Object, fate: str) -> Object:
    ready = fate == "ready"
    containers = []
    for container in pod["spec"]["containers"]:
        status: Object = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 5 if fate == "crash" else 0,
            "state": _state(fate),
        }
        if fate == "crash":
            status["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error"}}
        containers.append(status)
    phase = {"succeeded": "Succeeded", "missing": "Pending"}.get(fate, "Running")
    held = {"Initialized": True, "PodScheduled": True, "ContainersReady": ready, "Ready": ready}
    return {
        "phase": phase,
        "startTime": _now(),
        "containerStatuses": containers,
        "conditions": [_condition(name, holds) for name, holds in held.items()],
    }


def _state(fate: str) -> Object:
    match fate:
        case "missing":
            return {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        case "crash":
            return {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}}
        case "succeeded":
            return {"terminated": {"exitCode": 0, "reason": "Completed"}}
        case _:
            return {"running": {"startedAt": _now()}}


def _unschedulable() -> Object:
    condition = {**_condition("PodScheduled", False), "reason": "Unschedulable"}
    return {"conditions": [{**condition, "message": "0/1 nodes are available: 1 Insufficient gpu."}]}


def _condition(name: str, holds: bool) -> Object:
    return {"type": name, "status": str(holds), "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
