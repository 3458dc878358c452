"""Where the weights live and who brings them: the cache volume and the prewarm Job of one service.

Weights are *required first* when the serving container can't bring them itself, because it mounts the cache
read-only. Otherwise prewarming is a head start, and a failed one costs time but not the service.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Final

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.model_source import ModelSource, Scheme
from noctaya_api.quantity import canonical_quantity, parse_quantity
from noctaya_api.v1alpha1 import LLMService
from noctaya_api.v1alpha1.llmservice_delivery import CacheStrategy

from noctaya_operator.plan_error import PlanError
from noctaya_operator.serving import Serving

DEFAULT_CACHE_SIZE: Final = "50Gi"
READ_WRITE_ONCE: Final = "ReadWriteOnce"
READ_WRITE_MANY: Final = "ReadWriteMany"
_FROM_ALPHA: Final = re.compile(r"[^-]+-[^-]+")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The PersistentVolumeClaim of a cache."""

    access_mode: str
    size: str
    """Canonical quantity."""
    storage_class: str
    """Empty means the cluster's default class."""
    retain: bool
    """Whether it outlives the service."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """The volume at `/cache`: a claim of ours or a directory of the node."""

    claim: Claim | None
    host_path: str
    """Directory of the node; empty with a claim."""
    read_only: bool
    """How the serving container mounts it."""

    @property
    def one_node(self) -> bool:
        """Whether only Pods of one node can mount it."""
        return self.claim is not None and self.claim.access_mode == READ_WRITE_ONCE


@dataclass(frozen=True, kw_only=True)
class Prewarm:
    """The one-time download into the cache."""

    target: str
    """Directory the weights go to."""
    marker: str
    """File that says they are complete."""
    staged: bool
    """Whether an OCI artifact is pulled first and then promoted, instead of a download from a hub."""
    required: bool
    """Whether no backend can start without them."""
    as_root: bool
    """A directory of the node belongs to root, and no fsGroup changes that."""


def host_path(namespace: str, service: str) -> str:
    """Directory of the node for one service.

    The v0.4 alpha joined both names with a dash, so that `a-b`, `c` and `a`, `b-c` shared one. An underscore
    can occur in neither name. Where the joined name has exactly one dash nobody else can ever have meant it,
    and the service keeps the directory it may already have.
    """
    joined = f"{namespace}-{service}"
    name = joined if _FROM_ALPHA.fullmatch(joined) else f"{namespace}_{service}"
    return f"{names.HOST_PATH_CACHE_ROOT}/{name}"


def check_strategy(service: LLMService) -> None:
    """Raises PlanError for a strategy of a later version."""
    if service.spec.cache.strategy is CacheStrategy.BAKED_IMAGE:
        raise PlanError(
            StepReason.RENDER, "cache.strategy BakedImage is reserved for a later version; use None instead"
        )


def keeps_weights(service: LLMService) -> bool:
    """Whether the Pods have a cache volume."""
    return service.spec.cache.strategy is not CacheStrategy.NONE


def plan_prewarm(service: LLMService, source: ModelSource, serving: Serving) -> Prewarm | None:
    """Whether and how weights are downloaded ahead. Raises PlanError."""
    strategy = service.spec.cache.strategy
    staged = source.scheme is Scheme.OCI
    if staged:
        if not keeps_weights(service):
            raise PlanError(
                StepReason.PREWARM,
                "an oci:// model is staged into a cache; set cache.strategy to NodeLocalPVC, SharedPVC "
                "or HostPath",
            )
        target, marker = source.path, source.ready_marker
    elif source.is_hub and service.spec.cache.prewarm and keeps_weights(service):
        target, marker = _hub_cache(source, serving), f"{names.CACHE_MOUNT}/{names.READY_MARKER}"
    else:
        return None
    return Prewarm(
        target=target,
        marker=marker,
        staged=staged,
        required=staged or strategy is CacheStrategy.SHARED_PVC,
        as_root=strategy is CacheStrategy.HOST_PATH,
    )


def _hub_cache(source: ModelSource, serving: Serving) -> str:
    """Where the engine will look for the weights, which the runtime's environment may have moved."""
    variable = names.ENV_HF_HOME if source.scheme is Scheme.HF else names.ENV_MODELSCOPE_CACHE
    value = next((entry.get("value") for entry in serving.env if entry["name"] == variable), None)
    path = posixpath.normpath(value) if value else ""
    if not path.startswith(f"{names.CACHE_MOUNT}/"):
        raise PlanError(
            StepReason.PREWARM,
            f"the runtime sets {variable}, but not to a directory below {names.CACHE_MOUNT}: the engine "
            "would not find prewarmed weights; remove the variable or switch cache.prewarm off",
        )
    return path


def plan_cache(service: LLMService, prewarm: Prewarm | None) -> Cache | None:
    """The cache volume, None when nothing is kept. Raises PlanError."""
    spec = service.spec.cache
    if spec.strategy is CacheStrategy.NONE:
        return None
    read_only = prewarm is not None and prewarm.required
    if spec.strategy is CacheStrategy.HOST_PATH:
        path = host_path(service.namespace, service.name)
        return Cache(claim=None, host_path=path, read_only=read_only)
    size = spec.size if spec.size is not None else DEFAULT_CACHE_SIZE
    if parse_quantity(size) <= 0:
        raise PlanError(StepReason.CACHE, f"cache.size must be greater than zero, not {size}")
    claim = Claim(
        access_mode=READ_WRITE_MANY if spec.strategy is CacheStrategy.SHARED_PVC else READ_WRITE_ONCE,
        size=canonical_quantity(size),
        storage_class=spec.storage_class_name or "",
        retain=spec.retain,
    )
    return Cache(claim=claim, host_path="", read_only=read_only)
