"""The cache: its claim, its volume, its mount."""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.cache_volume import Cache, Claim
from noctaya_operator.hashes import spec_hash
from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render.metadata import backend_selector, manifest

CACHE_VOLUME: Final = "model-cache"


def render_claim(plan: ServicePlan, claim: Claim) -> Object:
    """The PersistentVolumeClaim of the cache; the keys of its spec stand in Go's order, for the hash."""
    spec: Object = {
        "accessModes": [claim.access_mode],
        "resources": {"requests": {"storage": claim.size}},
    }
    if claim.storage_class:
        spec["storageClassName"] = claim.storage_class
    annotations = {names.ANNOTATION_CREATE_ONCE_HASH: spec_hash(spec)}
    if claim.retain:
        annotations[names.ANNOTATION_RETAIN] = "true"
    return manifest(plan.names.cache_claim, labels=backend_selector(plan), annotations=annotations, spec=spec)


def cache_volume(cache: Cache) -> Object:
    """The volume of Pods that use the cache."""
    if cache.host_path:
        return {"name": CACHE_VOLUME, "hostPath": {"path": cache.host_path, "type": "DirectoryOrCreate"}}
    return {"name": CACHE_VOLUME, "persistentVolumeClaim": {"claimName": cache.claim_name}}


def cache_mount(*, read_only: bool) -> Object:
    """Where containers find it."""
    mount: Object = {"name": CACHE_VOLUME, "mountPath": names.CACHE_MOUNT}
    return {**mount, "readOnly": True} if read_only else mount
