"""Objects that are created once, when one is already there: keep, adopt, or refuse.

A Job can't be changed in place, and of a claim only the size, where its StorageClass lets it grow. So a
changed wish is an error that asks for a deliberate replacement (`replacement`). A missing or foreign hash is
no reason to refuse: the object itself is looked at and adopted if it is what would be made now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from noctaya_api import names
from noctaya_api.quantity import parse_quantity

from noctaya_operator.hashes import DATA_PREFIX
from noctaya_operator.kube.objects import Object, annotations_of, deleting
from noctaya_operator.kube.resources import JOBS, PVCS, SECRETS
from noctaya_operator.ownership import check_ownership, control_patch, merge_patch
from noctaya_operator.plan import ServicePlan
from noctaya_operator.plan_error import PlanError
from noctaya_operator.prewarm_state import JobState, job_state
from noctaya_operator.render.demand_auth import check_demand_secret
from noctaya_operator.render.order import Rendered
from noctaya_operator.weights import Way

_HASH = names.ANNOTATION_CREATE_ONCE_HASH


def judge(
    plan: ServicePlan,
    rendered: Rendered,
    *,
    live: Mapping[str, Any],
    owner: Mapping[str, Any],
    growing: frozenset[str] = frozenset(),
) -> Object | None:
    """What an existing object needs: None for nothing, or a merge patch.

    `owner` is the LLMService as the API server has it, `growing` are the StorageClasses whose volumes can
    grow. Raises PlanError: the object is somebody else's, is going away, was made for something else, or
    holds no usable token.
    """
    check_ownership(live, owner, ref=rendered.ref)
    if deleting(live):
        raise PlanError(rendered.step, f"{rendered.ref} is being deleted; it is made anew once it is gone")
    spec: Object = {}
    if rendered.ref.resource == SECRETS:
        check_demand_secret(live)
    if rendered.ref.resource == PVCS:
        spec = _check_claim(plan, rendered, live, growing=growing)
    if rendered.ref.resource == JOBS and (why := job_conflict(plan, rendered, live)):
        raise PlanError(rendered.step, why)
    patch = control_patch(live, owner, controlled=rendered.controlled)
    adopted = _adopted(rendered.object, live)
    if adopted:
        patch["annotations"] = {**patch.get("annotations", {}), **adopted}
    if not patch and not spec:
        return None
    return {**merge_patch(live, patch), **({"spec": spec} if spec else {})}


def _adopted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, str]:
    """Annotations that say what the object is taken for from now on."""
    wanted, found = annotations_of(desired), annotations_of(live)
    if wanted.get(_HASH) == found.get(_HASH):
        return {}
    return {name: value for name, value in wanted.items() if found.get(name) != value}


def claim_conflicts(rendered: Rendered, live: Mapping[str, Any], *, growing: frozenset[str]) -> list[str]:
    """What of an existing claim is not as wanted and can't be changed; the size may grow in `growing`
    StorageClasses."""
    if annotations_of(live).get(_HASH) == annotations_of(rendered.object)[_HASH]:
        return []
    return list(_claim_conflicts(rendered.object["spec"], live, growing=growing))


def job_conflict(plan: ServicePlan, rendered: Rendered, live: Mapping[str, Any]) -> str:
    """Why an existing Job is not the one that the plan needs, empty when it is."""
    found = annotations_of(live).get(_HASH, "")
    if found == annotations_of(rendered.object)[_HASH]:
        return ""
    if not found.startswith(DATA_PREFIX) and _brings(plan, live):
        return ""
    source = annotations_of(live).get(names.ANNOTATION_MODEL_SOURCE, "other weights")
    return (
        f"{rendered.ref} was made for {source}, the service now needs {plan.source.uri} or keeps it "
        "elsewhere; set cache.replace, or delete the Job, to have the weights downloaded"
    )


def _check_claim(
    plan: ServicePlan, rendered: Rendered, live: Mapping[str, Any], *, growing: frozenset[str]
) -> Object:
    """The part of the claim's spec to change, empty for nothing. Raises PlanError."""
    conflicts = claim_conflicts(rendered, live, growing=growing)
    if conflicts:
        retained = plan.service.spec.cache.replace and plan.service.spec.cache.retain
        way = "set cache.retain to false to have it replaced" if retained else "set cache.replace"
        raise PlanError(
            rendered.step,
            f"{rendered.ref} is immutable: {', '.join(conflicts)}. Set spec.cache back, or {way}, or "
            "delete it and with it the weights; then it is made anew",
        )
    if annotations_of(live).get(_HASH) == annotations_of(rendered.object)[_HASH]:
        return {}
    size = rendered.object["spec"]["resources"]["requests"]["storage"]
    if parse_quantity(size) == parse_quantity(_size_of(live)):
        return {}
    return {"resources": {"requests": {"storage": size}}}


def _claim_conflicts(
    desired: Mapping[str, Any], live: Mapping[str, Any], *, growing: frozenset[str]
) -> Iterator[str]:
    spec = live.get("spec") or {}
    modes, has_modes = desired["accessModes"], spec.get("accessModes") or []
    if set(modes) != set(has_modes):
        yield f"access mode is {'/'.join(has_modes) or 'none'}, wanted is {'/'.join(modes)}"
    # Without a wish the cluster's default class was filled in, whichever that was then.
    wanted, has = desired.get("storageClassName"), spec.get("storageClassName")
    if wanted is not None and wanted != has:
        yield f"storage class is {has or 'none'}, wanted is {wanted}"
    size, has_size = desired["resources"]["requests"]["storage"], _size_of(live)
    if parse_quantity(size) == parse_quantity(has_size):
        return
    told = f"size is {has_size}, wanted is {size}"
    if parse_quantity(size) < parse_quantity(has_size):
        yield f"{told}, and no claim shrinks"
    elif has not in growing:
        yield f"{told}, and its storage class {has or 'none'} does not allow expansion"
    elif (live.get("status") or {}).get("phase") != "Bound":
        yield f"{told}, and it can't grow before it is bound to a volume"


def _size_of(claim: Mapping[str, Any]) -> Any:
    return (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage", 0)


def _brings(plan: ServicePlan, job: Mapping[str, Any]) -> bool:
    """Whether a Job that doesn't say what it brings brings what this plan needs, where this plan needs it.

    One that names the model does. One that is complete also counts where the engine could fetch what is
    missing; where the engine waits for the weights, a guess could make it wait for ever.
    """
    if plan.prewarm is not None and plan.prewarm.way is Way.DOWNLOAD:
        return False
    if _names_model(job.get("spec"), plan.source.reference or plan.source.path):
        return True
    optional = plan.prewarm is None or not plan.prewarm.waited_for
    return optional and job_state(job) is JobState.COMPLETE


def _names_model(value: Any, model: str) -> bool:
    if isinstance(value, str):
        return re.search(rf"(?<![\w./:-]){re.escape(model)}(?![\w./:-])", value) is not None
    if isinstance(value, Mapping):
        return any(_names_model(item, model) for item in value.values())
    return isinstance(value, list) and any(_names_model(item, model) for item in value)
