"""What a service replaces on purpose: a download that brought other weights, a claim that can't follow.

Objects that are created once can't be changed. With `cache.replace` the service says that it wants them
deleted and made anew; without it such a change is refused (`create_once`). What is replaced unasked, because
nothing is lost by it: a download whose claim was made anew after it, and one that failed, at once when
something else is wanted by now and otherwise when it is time (`download_retry`). One that is going away
already is waited for.

A claim goes only while nothing runs that could use it, and with it the download that filled it. Until both
are back the service is held at zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from noctaya_operator.create_once import claim_conflicts, job_conflict
from noctaya_operator.download_retry import retry_in
from noctaya_operator.kube.objects import Object, deleting, metadata_of
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_state import JobState, job_state
from noctaya_operator.render.order import Rendered


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """An object that is not kept."""

    ref: ObjectRef
    waits: bool
    """Whether it can't be deleted now: it is going already, or something still uses it."""
    note: str
    """What to say about it on the service while it waits; empty for nothing."""


def plan_replacements(
    plan: ServicePlan,
    rendered: Sequence[Rendered],
    *,
    found: Mapping[ObjectRef, Object | None],
    growing: frozenset[str],
    busy: bool,
    now: datetime,
) -> tuple[Replacement, ...]:
    """Everything to replace, in the order to delete it.

    Args:
        plan: the service as decided.
        rendered: its objects.
        found: those that are there, all of them the service's own.
        growing: StorageClasses whose volumes can grow.
        busy: whether a replica of the backend runs or is wanted.
        now: the moment, for a download that is to be tried again.
    """
    wanted = {each.ref: each for each in rendered}
    claim = list(_of_claim(plan, wanted, found, growing=growing, busy=busy))
    with_claim = any(not each.waits for each in claim)
    return (*_of_job(plan, wanted, found, with_claim=with_claim, now=now), *claim)


def _of_claim(
    plan: ServicePlan,
    wanted: Mapping[ObjectRef, Rendered],
    found: Mapping[ObjectRef, Object | None],
    *,
    growing: frozenset[str],
    busy: bool,
) -> Iterator[Replacement]:
    ref = plan.names.cache_claim
    live, each = found.get(ref), wanted.get(ref)
    cache = plan.service.spec.cache
    if live is None or each is None or not cache.replace:
        return
    if deleting(live):
        yield Replacement(ref=ref, waits=True, note=f"{ref} is being deleted and then made anew")
        return
    conflicts = claim_conflicts(each, live, growing=growing)
    if not conflicts or cache.retain:
        return
    note = f"{ref} is replaced once no replica runs: {', '.join(conflicts)}" if busy else ""
    yield Replacement(ref=ref, waits=busy, note=note)


def _of_job(
    plan: ServicePlan,
    wanted: Mapping[ObjectRef, Rendered],
    found: Mapping[ObjectRef, Object | None],
    *,
    with_claim: bool,
    now: datetime,
) -> Iterator[Replacement]:
    ref = plan.names.prewarm_job
    live, each = found.get(ref), wanted.get(ref)
    if live is None or each is None:
        return
    if deleting(live):
        yield Replacement(ref=ref, waits=True, note="")
    elif (
        with_claim
        or _older_than(live, found.get(plan.names.cache_claim))
        or (_may_go(plan, live) and job_conflict(plan, each, live))
        or retry_in(plan, live, now=now) == 0
    ):
        yield Replacement(ref=ref, waits=False, note="")


def _may_go(plan: ServicePlan, job: Mapping[str, Any]) -> bool:
    """Whether a download of something else is to make way: the service says so, or it brought nothing."""
    return plan.service.spec.cache.replace or job_state(job) is JobState.FAILED


def _older_than(job: Mapping[str, Any], claim: Mapping[str, Any] | None) -> bool:
    """Whether a download was complete before the claim it should have filled was made."""
    status = job.get("status")
    done = status.get("completionTime") if isinstance(status, Mapping) else None
    made = metadata_of(claim).get("creationTimestamp") if claim is not None else None
    if not isinstance(done, str) or not isinstance(made, str):
        return False
    try:
        return datetime.fromisoformat(done) < datetime.fromisoformat(made)
    except (ValueError, TypeError):
        return False
