"""Reading and relating Kubernetes objects kept as plain dictionaries.

Objects stay as the server sent them: a strict model would turn one odd object into a dead watch for all of
its kind. Readers therefore never raise over a missing or odd field, save `key_of`: what has no name can't be
kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


class MalformedObject(ValueError):
    """Not a Kubernetes object: no metadata or no name."""


@dataclass(frozen=True, order=True, slots=True)
class Key:
    """Where an object lives; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def metadata_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata, empty when missing."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def key_of(obj: Mapping[str, Any]) -> Key:
    """Namespace and name.

    Raises:
        MalformedObject: there is no name.
    """
    metadata = metadata_of(obj)
    name, namespace = metadata.get("name"), metadata.get("namespace") or ""
    if not isinstance(name, str) or not name or not isinstance(namespace, str):
        raise MalformedObject("an object without metadata.name")
    return Key(namespace, name)


def uid_of(obj: Mapping[str, Any]) -> str:
    """The uid, empty before creation."""
    return str(metadata_of(obj).get("uid") or "")


def resource_version_of(obj: Mapping[str, Any]) -> str:
    """The resourceVersion (opaque), empty before creation."""
    return str(metadata_of(obj).get("resourceVersion") or "")


def generation_of(obj: Mapping[str, Any]) -> int:
    """The generation of the desired state; 0 for kinds that have none."""
    generation = metadata_of(obj).get("generation")
    return generation if isinstance(generation, int) else 0


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels, empty when there are none."""
    return _strings(metadata_of(obj).get("labels"))


def annotations_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations, empty when there are none."""
    return _strings(metadata_of(obj).get("annotations"))


def deleting(obj: Mapping[str, Any]) -> bool:
    """True once deletion was asked for; the object may stay for its finalizers."""
    return bool(metadata_of(obj).get("deletionTimestamp"))


def owner_references_of(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All owner references that are mappings."""
    references = metadata_of(obj).get("ownerReferences")
    return (
        [entry for entry in references if isinstance(entry, Mapping)] if isinstance(references, list) else []
    )


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner reference of the controlling owner, None when nobody controls the object."""
    return next((entry for entry in owner_references_of(obj) if entry.get("controller") is True), None)


def controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """True when `owner` (this very object, by uid) controls `obj`."""
    controller = controller_of(obj)
    return controller is not None and bool(uid_of(owner)) and controller.get("uid") == uid_of(owner)


def owner_reference(owner: Mapping[str, Any]) -> Object:
    """The reference an object controlled by `owner` carries.

    `blockOwnerDeletion` makes a foreground deletion of the owner wait for the object.

    Raises:
        MalformedObject: the owner has no name, uid, apiVersion or kind (it was not read from a server).
    """
    key, uid = key_of(owner), uid_of(owner)
    api_version, kind = owner.get("apiVersion"), owner.get("kind")
    if not uid or not api_version or not kind:
        raise MalformedObject(f"{key} can't own anything: apiVersion, kind or uid missing")
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": key.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _strings(value: object) -> Mapping[str, str]:
    return value if isinstance(value, Mapping) else {}
