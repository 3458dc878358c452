"""What of the cluster a plan has to respect: decisions of former passes, and what the v0.4 alpha left.

Planning stays a function of its arguments; what it can't know from the spec alone is collected here first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from noctaya_api import names
from noctaya_api.model_source import ModelSourceError
from noctaya_api.v1alpha1 import LLMService
from noctaya_api.v1alpha1.llmservice_status import LLMServiceStatus

from noctaya_operator.hashes import DATA_PREFIX
from noctaya_operator.kube.objects import Object, annotations_of, deleting
from noctaya_operator.prewarm_report import last_report
from noctaya_operator.prewarm_state import JobState, job_state


@dataclass(frozen=True, kw_only=True)
class Precedent:
    """What binds a plan."""

    digest: str = ""
    """What the tag of an artifact was resolved to, without `sha256:`."""
    hub_cache: bool = False
    """Whether the prewarm Job that is there fills a hub client's own cache, as the alpha's did."""
    failed: bool = False
    """Whether it failed."""
    node: str = ""
    """Node that the download ran on."""


NONE: Final = Precedent()


def find_precedent(
    service: LLMService, status: LLMServiceStatus, *, job: Object | None, pods: Sequence[Object]
) -> Precedent:
    """What binds the plan of a service.

    Args:
        service: what is asked for.
        status: the last one written.
        job: the prewarm Job as it is.
        pods: Pods of that Job, those that are over too.
    """
    if job is not None and deleting(job):
        job = None
    source = service.spec.model.source
    if source is None:
        return NONE
    ours = job is not None and annotations_of(job).get(names.ANNOTATION_MODEL_SOURCE) == source.uri
    told = last_report(pods) if ours and job_state(job) is JobState.COMPLETE else None
    digest = ""
    if status.model is not None and status.model.uri == source.uri:
        digest = status.model.digest or ""
    if not digest and told is not None:
        digest = told.digest
    return Precedent(
        digest=_digest(service, digest),
        hub_cache=job is not None and _fills_hub_cache(job, ours=ours),
        failed=job_state(job) is JobState.FAILED and (ours or _unsigned(job)),
        node=_node(status, job=job, pods=pods),
    )


def _digest(service: LLMService, digest: str) -> str:
    """The digest if it is one; what a Pod says is not trusted to be."""
    source = service.spec.model.source
    if source is None or not digest:
        return ""
    try:
        return source.parsed().pinned(digest).digest
    except ModelSourceError:
        return ""


def _fills_hub_cache(job: Object, *, ours: bool) -> bool:
    if annotations_of(job).get(names.ANNOTATION_CREATE_ONCE_HASH, "").startswith(DATA_PREFIX) and not ours:
        return False
    return not mentions(job.get("spec"), f"{names.PREWARMED_DIR}/")


def _unsigned(job: Object | None) -> bool:
    return job is not None and names.ANNOTATION_MODEL_SOURCE not in annotations_of(job)


def mentions(value: Any, text: str) -> bool:
    """Whether a text stands anywhere in an object."""
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        return any(mentions(item, text) for item in value.values())
    return isinstance(value, list) and any(mentions(item, text) for item in value)


def _node(status: LLMServiceStatus, *, job: Object | None, pods: Sequence[Object]) -> str:
    if job is None:
        return ""
    for pod in pods:
        spec = pod.get("spec")
        if isinstance(spec, Mapping) and spec.get("nodeName"):
            return str(spec["nodeName"])
    known = status.prewarm
    started = (job.get("status") or {}).get("startTime")
    same = known is not None and known.started_at == started
    return known.node or "" if known is not None and same else ""
