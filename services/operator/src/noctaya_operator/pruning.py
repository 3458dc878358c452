"""What is kept of each cached object: what the operator reads, nothing that changes without meaning to it.

A thousand services are ten thousand objects; what is not kept costs no memory, and a change of it wakes
nobody. The resourceVersion is kept only where the operator writes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from noctaya_api import names

from noctaya_operator.drift import keep_own_fields
from noctaya_operator.kube.objects import Object

_IDENTITY: Final = (
    "name",
    "namespace",
    "uid",
    "labels",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
)
_SHARED_LENGTH: Final = 64


def keep_written(obj: Object) -> Object:
    """An object the operator writes: all of its spec, the owned fields, a status without noise."""
    keep_own_fields(obj)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("selfLink", None)
    status = obj.get("status")
    if isinstance(status, dict):
        obj["status"] = _picked(status, _STATUS.get(str(obj.get("kind")), ()))
    return _shared(obj)


def keep_custom(obj: Object) -> Object:
    """An LLMService or InferenceRuntime: everything but who wrote it."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return _shared(obj)


def keep_pod(obj: Object) -> Object:
    """A Pod: identity, where it is, how it is."""
    kept = _identity(obj)
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    told = {name: annotations[name] for name in _TOLD_TO_GATEWAYS if name in annotations}
    if told:
        kept["metadata"]["annotations"] = told
    spec = obj.get("spec") if isinstance(obj.get("spec"), Mapping) else {}
    containers = [
        {"name": each.get("name"), "image": each.get("image")}
        for group in ("initContainers", "containers")
        for each in (spec or {}).get(group) or ()
        if isinstance(each, Mapping)
    ]
    kept["spec"] = {"nodeName": (spec or {}).get("nodeName"), "containers": containers}
    fields = (
        "phase",
        "reason",
        "message",
        "podIP",
        "conditions",
        "initContainerStatuses",
        "containerStatuses",
    )
    kept["status"] = _picked(obj.get("status"), fields)
    return _shared(kept)


def keep_slice(obj: Object) -> Object:
    """An EndpointSlice: its ports and how many of its endpoints are ready."""
    kept = _identity(obj)
    kept["ports"] = [
        {"name": port.get("name"), "port": port.get("port")}
        for port in obj.get("ports") or ()
        if isinstance(port, Mapping)
    ]
    ready = 0
    for endpoint in obj.get("endpoints") or ():
        conditions = endpoint.get("conditions") if isinstance(endpoint, Mapping) else None
        # Absent means unknown, which consumers are told to take for ready.
        if (conditions or {}).get("ready") is not False:
            ready += 1
    kept["readyEndpoints"] = ready
    return _shared(kept)


def keep_hpa(obj: Object) -> Object:
    """A HorizontalPodAutoscaler: which metrics it has and what it says of itself."""
    kept = _identity(obj)
    spec = obj.get("spec") if isinstance(obj.get("spec"), Mapping) else {}
    metrics = (spec or {}).get("metrics") or ()
    kept["spec"] = {"metrics": [{"type": each.get("type")} for each in metrics if isinstance(each, Mapping)]}
    status = _picked(obj.get("status"), ("conditions",))
    status["conditions"] = [
        {name: value for name, value in each.items() if name != "lastTransitionTime"}
        for each in status.get("conditions") or ()
        if isinstance(each, Mapping)
    ]
    kept["status"] = status
    return _shared(kept)


def keep_class(obj: Object) -> Object:
    """A StorageClass: its name, whether it is the default, and whether its volumes can grow."""
    kept = _identity(obj)
    kept["allowVolumeExpansion"] = obj.get("allowVolumeExpansion") is True
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    default = "storageclass.kubernetes.io/is-default-class"
    if default in annotations:
        kept["metadata"]["annotations"] = {default: annotations[default]}
    return _shared(kept)


_TOLD_TO_GATEWAYS: Final = (
    names.ANNOTATION_ACTIVATION_FAILURE,
    names.ANNOTATION_ACTIVATION_FAILURE_OF,
    names.ANNOTATION_PREWARMING,
)
_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("replicas", "readyReplicas", "updatedReplicas", "conditions"),
    "Job": ("active", "failed", "succeeded", "startTime", "completionTime", "conditions"),
    "PersistentVolumeClaim": ("phase",),
    "ScaledObject": ("conditions", "hpaName", "pausedReplicaCount"),
}


def _identity(obj: Object) -> Object:
    return {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata": _picked(obj.get("metadata"), _IDENTITY),
    }


def _picked(value: Any, fields: tuple[str, ...]) -> Object:
    if not isinstance(value, Mapping):
        return {}
    return {name: value[name] for name in fields if name in value}


def _shared(obj: Object) -> Object:
    """The same with short texts that equal ones elsewhere are."""
    return {sys.intern(str(name)): _interned(item) for name, item in obj.items()}


def _interned(value: Any) -> Any:
    if isinstance(value, dict):
        return {sys.intern(str(name)): _interned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_interned(item) for item in value]
    if type(value) is str and len(value) <= _SHARED_LENGTH:
        return sys.intern(value)
    return value
