"""Creating, changing and deleting objects by the API server's rules."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import Resource

from fake_apiserver.defaulting import with_defaults
from fake_apiserver.ownership import ApplyConflict, Manager, applied, updated
from fake_apiserver.protocol import Object, Refused, Target
from fake_apiserver.store import Store

NO_GENERATION = frozenset({"ConfigMap", "Secret", "Service", "Lease", "Event", "EndpointSlice", "Namespace"})
NO_STATUS = frozenset({"ConfigMap", "Secret", "Lease", "Event", "EndpointSlice", "StorageClass"})
SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
FOREGROUND = "foregroundDeletion"

Admission = Callable[[str, Resource, Object], str | None]


class Writer:
    """Applies writes to a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.admission: list[Admission] = []
        self.terminating_namespaces: set[str] = set()

    def create(self, target: Target, obj: Object, manager: str) -> Object:
        """POST. Refuses existing names and terminating namespaces."""
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        if target.resource.namespaced:
            metadata["namespace"] = target.namespace
        if not metadata.get("name"):
            raise Refused(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        key = Key(target.namespace, metadata["name"])
        if self.store.get(target.resource, key) is not None:
            raise Refused(
                409,
                "AlreadyExists",
                f'{target.resource} "{key.name}" already exists',
                name=key.name,
                kind=target.resource.plural,
            )
        for name in (*SERVER_FIELDS, "managedFields"):
            metadata.pop(name, None)
        if target.resource.kind not in NO_STATUS:
            obj.pop("status", None)
        return self._store_new(target, key, updated(None, obj, Manager(manager, "Update"), now=_now()))

    def update(self, target: Target, obj: Object, manager: str) -> Object:
        """PUT of the object or of its status."""
        live = self._live(target)
        wanted = (obj.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != live["metadata"]["resourceVersion"]:
            raise _modified(target)
        return self._change(target, live, obj, manager)

    def merge_patch(self, target: Target, patch: Object, manager: str) -> Object:
        """PATCH with merge-patch+json."""
        live = self._live(target)
        merged = _merge_patch(live, patch)
        if not isinstance(merged, dict):
            raise Refused(400, "BadRequest", "the patch leaves no object")
        wanted = (merged.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != live["metadata"]["resourceVersion"]:
            raise _modified(target)
        return self._change(target, live, merged, manager)

    def apply(self, target: Target, patch: Object, manager: str, *, force: bool) -> Object:
        """PATCH with apply-patch+yaml; creates when absent."""
        key = Key(target.namespace, target.name)
        live = self.store.get(target.resource, key)
        metadata = patch.get("metadata") or {}
        if metadata.get("managedFields"):
            raise Refused(400, "BadRequest", "metadata.managedFields must be nil")
        if live is None and target.subresource:
            raise _missing(target)
        wanted = metadata.get("resourceVersion")
        if wanted and (live is None or wanted != live["metadata"]["resourceVersion"]):
            raise _modified(target)
        if target.subresource == "status":
            patch = {
                name: patch[name] for name in ("apiVersion", "kind", "metadata", "status") if name in patch
            }
        elif target.resource.kind not in NO_STATUS:
            patch = {name: value for name, value in patch.items() if name != "status"}
        owner = Manager(manager, "Apply", target.subresource)
        try:
            merged = applied(live, patch, owner, force=force, now=_now())
        except ApplyConflict as error:
            causes = [
                {
                    "reason": "FieldManagerConflict",
                    "message": f'conflict with "{other}"',
                    "field": "/".join(path),
                }
                for path, other in error.conflicts.items()
            ]
            raise Refused(409, "Conflict", str(error), causes=causes) from error
        if live is None:
            if target.resource.namespaced:
                merged["metadata"]["namespace"] = target.namespace
            return self._store_new(target, key, merged)
        return self._finish(target, live, merged)

    def delete(self, target: Target, options: Object) -> Object:
        """DELETE with preconditions, propagation and finalizers."""
        live = self._live(target)
        metadata = live["metadata"]
        preconditions = options.get("preconditions") or {}
        for field, own in (("uid", "uid"), ("resourceVersion", "resourceVersion")):
            if preconditions.get(field) and preconditions[field] != metadata.get(own):
                raise Refused(
                    409, "Conflict", f"the {field} in the precondition does not match", name=target.name
                )
        if options.get("propagationPolicy") == "Foreground":
            metadata["finalizers"] = [*(metadata.get("finalizers") or []), FOREGROUND]
        key = Key(target.namespace, target.name)
        if metadata.get("finalizers"):
            if not metadata.get("deletionTimestamp"):
                metadata["deletionTimestamp"] = _now()
                metadata["deletionGracePeriodSeconds"] = 0
                if "generation" in metadata:
                    metadata["generation"] += 1
                return self.store.write(target.resource, key, live) or {}
            return live
        return self.store.write(target.resource, key, None) or {}

    def _live(self, target: Target) -> Object:
        live = self.store.get(target.resource, Key(target.namespace, target.name))
        if live is None:
            raise _missing(target)
        return live

    def _change(self, target: Target, live: Object, wanted: Object, manager: str) -> Object:
        new = copy.deepcopy(wanted)
        if target.subresource == "status":
            new = {**copy.deepcopy(live), **({"status": new["status"]} if "status" in new else {})}
            if "status" not in wanted:
                new.pop("status", None)
        elif target.resource.kind not in NO_STATUS:
            new.pop("status", None)
            if "status" in live:
                new["status"] = copy.deepcopy(live["status"])
        metadata = new.setdefault("metadata", {})
        for field in (*SERVER_FIELDS, "name", "namespace"):
            metadata.pop(field, None)
            if field in live["metadata"]:
                metadata[field] = live["metadata"][field]
        new["apiVersion"], new["kind"] = target.resource.api_version, target.resource.kind
        owner = Manager(manager, "Update", target.subresource)
        return self._finish(target, live, updated(live, with_defaults(new), owner, now=_now()))

    def _finish(self, target: Target, live: Object, new: Object) -> Object:
        new = with_defaults(new)
        metadata = new["metadata"]
        metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
        if new == live:
            return live
        self._admit("update", target, new)
        if "generation" in live["metadata"] and _desired(new) != _desired(live):
            metadata["generation"] = live["metadata"]["generation"] + 1
        key = Key(target.namespace, target.name)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            return self.store.write(target.resource, key, None) or {}
        return self.store.write(target.resource, key, new) or {}

    def _store_new(self, target: Target, key: Key, obj: Object) -> Object:
        if key.namespace in self.terminating_namespaces:
            raise Refused(
                403,
                "Forbidden",
                f'unable to create new content in namespace "{key.namespace}" because it is being terminated',
                causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}],
                name=key.name,
                kind=target.resource.plural,
            )
        obj["apiVersion"], obj["kind"] = target.resource.api_version, target.resource.kind
        metadata = obj["metadata"]
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = _now()
        if target.resource.kind not in NO_GENERATION:
            metadata["generation"] = 1
        if target.resource.kind not in NO_STATUS:
            obj.pop("status", None)
        with_defaults(obj)
        self._admit("create", target, obj)
        return self.store.write(target.resource, key, obj) or {}

    def _admit(self, verb: str, target: Target, obj: Object) -> None:
        for refuse in self.admission:
            message = refuse(verb, target.resource, copy.deepcopy(obj))
            if message is not None:
                raise Refused(403, "Forbidden", message, name=target.name, kind=target.resource.plural)


def _desired(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in {"metadata", "status"}}


def _missing(target: Target) -> Refused:
    message = f'{target.resource} "{target.name}" not found'
    return Refused(404, "NotFound", message, name=target.name, kind=target.resource.plural)


def _modified(target: Target) -> Refused:
    message = (
        f'Operation cannot be fulfilled on {target.resource} "{target.name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return Refused(409, "Conflict", message, name=target.name, kind=target.resource.plural)


def _merge_patch(live: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_patch(merged.get(name), value)
    return merged


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
