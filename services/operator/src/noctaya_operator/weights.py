"""Who brings the weights of one service, and where to: the prewarm Job as far as it is decided.

Prewarmed weights are a plain directory, named after what it holds, and the engine is pointed at it. Weights
are *required* when the engine can't bring them itself: an artifact, a bucket, a cache that it mounts
read-only. Otherwise prewarming is a head start: after a failed one the engine fetches for itself.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from noctaya_api import names
from noctaya_api.conditions import StepReason
from noctaya_api.model_source import FileFilter, ModelSource, Scheme, cache_dir
from noctaya_api.v1alpha1 import LLMService
from noctaya_api.v1alpha1.llmservice_delivery import CacheStrategy

from noctaya_operator.cache_volume import keeps_weights
from noctaya_operator.plan_error import PlanError
from noctaya_operator.precedent import Precedent
from noctaya_operator.serving import Serving

DIGEST_PLACEHOLDER: Final = "{digest}"
"""In the arguments of a stage whose tag was not resolved yet; the agent fills it in."""


class Way(StrEnum):
    """How weights get into the cache ahead of the engine."""

    DOWNLOAD = "Download"
    """From a hub or bucket into a directory of their own."""
    STAGE = "Stage"
    """From an OCI registry into a directory of their own."""
    HUB_CACHE = "HubCache"
    """Into the hub client's own cache, as the v0.4 alpha did; only for Jobs that already did so."""


@dataclass(frozen=True, kw_only=True)
class Prewarm:
    """The one-time download into the cache."""

    way: Way
    target: str
    """Directory the weights go to."""
    marker: str
    """File that says they are complete."""
    files: FileFilter
    required: bool
    """Whether the engine can't bring them itself."""
    engine_reads: bool
    """Whether the engine is pointed at them; not so in a hub client's cache, nor when it has to fetch for
    itself because the download failed."""
    as_root: bool
    """A directory of the node belongs to root, and no fsGroup changes that."""
    what: str
    """What identifies the weights, as the user named them: a tag stays a tag."""
    place: str
    """What identifies their place in the cache."""

    @property
    def staged(self) -> bool:
        """Whether an OCI artifact is pulled first and then promoted, instead of a download."""
        return self.way is Way.STAGE

    @property
    def waited_for(self) -> bool:
        """Whether an engine must not start before they are there."""
        return self.required or self.engine_reads


def way_of(service: LLMService, source: ModelSource, precedent: Precedent) -> Way | None:
    """Whether and how weights are brought ahead. Raises PlanError."""
    always = source.scheme in {Scheme.OCI, Scheme.S3}
    if always and not keeps_weights(service):
        raise PlanError(
            StepReason.PREWARM,
            f"the weights of an {source.scheme}:// model are brought into a cache; set cache.strategy to "
            "NodeLocalPVC, SharedPVC or HostPath",
        )
    if source.scheme is Scheme.OCI:
        return Way.STAGE
    if source.scheme is Scheme.S3:
        return Way.DOWNLOAD
    if not source.is_hub or not service.spec.cache.prewarm or not keeps_weights(service):
        return None
    return Way.HUB_CACHE if precedent.hub_cache else Way.DOWNLOAD


def is_required(service: LLMService, source: ModelSource) -> bool:
    """Whether an engine can't bring its weights itself when nobody does it ahead."""
    cache = service.spec.cache
    if not source.is_hub or (cache.prewarm and cache.strategy is CacheStrategy.SHARED_PVC):
        return True
    given = service.spec.model.source
    # No engine takes the token of ModelScope from a file.
    return source.scheme is Scheme.MODELSCOPE and given is not None and given.secret_ref is not None


def engine_reads(way: Way | None, *, required: bool, precedent: Precedent) -> bool:
    """Whether the engine is pointed at the directory that is brought ahead."""
    return way in {Way.STAGE, Way.DOWNLOAD} and (required or not precedent.failed)


def weights_directory(service: LLMService, source: ModelSource) -> str:
    """Directory that holds the weights once they are brought."""
    given = service.spec.model.source
    return cache_dir(source, given.file_filter if given is not None else FileFilter())


def check_token(service: LLMService, source: ModelSource) -> None:
    """Raises PlanError when an engine that fetches for itself can't be given the token it needs."""
    if source.is_hub and is_required(service, source):
        raise PlanError(
            StepReason.MODEL_RESOLUTION,
            "no engine takes the token of ModelScope from a file: set cache.prewarm, so that the weights are "
            "downloaded ahead, and a cache.strategy other than None",
        )


def plan_prewarm(
    service: LLMService, source: ModelSource, serving: Serving, *, way: Way, precedent: Precedent
) -> Prewarm:
    """The download in detail. Raises PlanError."""
    given = service.spec.model.source
    files = given.file_filter if given is not None else FileFilter()
    what, place = source.reference or source.path, ""
    match way:
        case Way.STAGE:
            target = source.path
            if given is not None and given.parsed().tag:
                # Whatever the tag stands for: a resolved one is the same download.
                what, place = given.parsed().reference, names.OCI_CACHE_DIR
            if source.tag:
                target = f"{names.OCI_CACHE_DIR}/sha256-{DIGEST_PLACEHOLDER}"
            marker = f"{target}/{names.READY_MARKER}"
        case Way.DOWNLOAD:
            target = weights_directory(service, source)
            marker = f"{target}/{names.READY_MARKER}"
        case Way.HUB_CACHE:
            target = _hub_cache(source, serving)
            marker = f"{names.CACHE_MOUNT}/{names.READY_MARKER}"
    required = is_required(service, source)
    return Prewarm(
        way=way,
        target=target,
        marker=marker,
        files=files,
        required=required,
        engine_reads=engine_reads(way, required=required, precedent=precedent),
        as_root=service.spec.cache.strategy is CacheStrategy.HOST_PATH,
        what=what,
        place=place or target,
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
