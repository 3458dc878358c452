"""Where the weights of one service lie: the volume at `/cache`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.quantity import canonical_quantity, parse_quantity
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.llmservice_delivery import CacheStrategy

from noctaya_operator.plan_error import PlanError

DEFAULT_CACHE_SIZE: Final = "50Gi"
READ_WRITE_ONCE: Final = "ReadWriteOnce"
READ_WRITE_MANY: Final = "ReadWriteMany"
_FROM_ALPHA: Final = re.compile(r"[^-]+-[^-]+")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The PersistentVolumeClaim that the service makes for its cache."""

    access_mode: str
    size: str
    """Canonical quantity."""
    storage_class: str
    """Empty means the cluster's default class."""
    retain: bool
    """Whether it outlives the service."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """The volume at `/cache`: a claim of ours, a claim of others, or a directory of the node."""

    claim: Claim | None
    """What the service makes; None with a claim of others or a directory."""
    claim_name: str
    """Claim that Pods mount; empty with a directory."""
    host_path: str
    """Directory of the node; empty with a claim."""
    read_only: bool
    """How the serving container mounts it."""
    size: str
    """Canonical quantity: how much it may hold, as far as the service says."""

    @property
    def one_node(self) -> bool:
        """Whether only Pods of one node can mount it."""
        return self.claim is not None and self.claim.access_mode == READ_WRITE_ONCE

    @property
    def shared(self) -> bool:
        """Whether other services may keep their weights in it."""
        return bool(self.claim_name) and self.claim is None


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


def check_level(service: LLMService, runtime: InferenceRuntime) -> None:
    """Raises PlanError for a cache that an engine at the level `restricted` can't have."""
    if runtime.spec.restricted and service.spec.cache.strategy is CacheStrategy.HOST_PATH:
        raise PlanError(
            StepReason.CACHE,
            f"cache.strategy HostPath mounts a directory of the node, which podSecurity.level restricted of "
            f"InferenceRuntime {runtime.name} rules out; use NodeLocalPVC, SharedPVC or None",
        )


def keeps_weights(service: LLMService) -> bool:
    """Whether the Pods have a cache volume."""
    return service.spec.cache.strategy is not CacheStrategy.NONE


def plan_cache(service: LLMService, *, read_only: bool) -> Cache | None:
    """The cache volume, None when nothing is kept; `read_only` is how engines mount it. Raises PlanError."""
    spec = service.spec.cache
    if spec.strategy is CacheStrategy.NONE:
        return None
    size = spec.size if spec.size is not None else DEFAULT_CACHE_SIZE
    if parse_quantity(size) <= 0:
        raise PlanError(StepReason.CACHE, f"cache.size must be greater than zero, not {size}")
    amount = canonical_quantity(size)
    if spec.strategy is CacheStrategy.HOST_PATH:
        path = host_path(service.namespace, service.name)
        return Cache(claim=None, claim_name="", host_path=path, read_only=read_only, size=amount)
    if spec.claim_name is not None:
        return Cache(claim=None, claim_name=spec.claim_name, host_path="", read_only=read_only, size=amount)
    claim = Claim(
        access_mode=READ_WRITE_MANY if spec.strategy is CacheStrategy.SHARED_PVC else READ_WRITE_ONCE,
        size=amount,
        storage_class=spec.storage_class_name or "",
        retain=spec.retain,
    )
    name = names.cache_claim_name(service.name)
    return Cache(claim=claim, claim_name=name, host_path="", read_only=read_only, size=amount)
