"""Objects that are created once, when one is already there: keep, adopt, or refuse.

A claim and a Job can't be changed in place, so a changed wish is an error that asks for a deliberate
deletion. A missing or foreign hash is no reason to refuse: the object itself is looked at and adopted if it
is what would be made now.
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
from noctaya_operator.prewarm_gate import JobState, job_state
from noctaya_operator.render.demand_auth import check_demand_secret
from noctaya_operator.render.order import Rendered

_HASH = names.ANNOTATION_CREATE_ONCE_HASH


def judge(
    plan: ServicePlan, rendered: Rendered, *, live: Mapping[str, Any], owner: Mapping[str, Any]
) -> Object | None:
    """What an existing object needs: None for nothing, or a merge patch of its metadata.

    `owner` is the LLMService as the API server has it. Raises PlanError: the object is somebody else's, is
    going away, was made for something else, or holds no usable token.
    """
    check_ownership(live, owner, ref=rendered.ref)
    if deleting(live):
        raise PlanError(rendered.step, f"{rendered.ref} is being deleted; it is made anew once it is gone")
    if rendered.ref.resource == SECRETS:
        check_demand_secret(live)
    if rendered.ref.resource == PVCS:
        _check_claim(rendered, live)
    if rendered.ref.resource == JOBS:
        _check_job(plan, rendered, live)
    patch = control_patch(live, owner, controlled=rendered.controlled)
    adopted = _adopted(rendered.object, live)
    if adopted:
        patch["annotations"] = {**patch.get("annotations", {}), **adopted}
    return merge_patch(live, patch) if patch else None


def _adopted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, str]:
    """Annotations that say what the object is taken for from now on."""
    wanted, found = annotations_of(desired), annotations_of(live)
    if wanted.get(_HASH) == found.get(_HASH):
        return {}
    return {name: value for name, value in wanted.items() if found.get(name) != value}


def _check_claim(rendered: Rendered, live: Mapping[str, Any]) -> None:
    if annotations_of(live).get(_HASH) == annotations_of(rendered.object)[_HASH]:
        return
    differences = list(_claim_differences(rendered.object["spec"], live.get("spec") or {}))
    if differences:
        raise PlanError(
            rendered.step,
            f"{rendered.ref} is immutable: {', '.join(differences)}. Set spec.cache back, change the claim "
            "yourself, or delete it and with it the weights; then it is made anew",
        )


def _claim_differences(desired: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    modes, has_modes = desired["accessModes"], live.get("accessModes") or []
    if set(modes) != set(has_modes):
        yield f"access mode is {'/'.join(has_modes) or 'none'}, wanted is {'/'.join(modes)}"
    size = desired["resources"]["requests"]["storage"]
    has_size = ((live.get("resources") or {}).get("requests") or {}).get("storage", 0)
    if parse_quantity(size) != parse_quantity(has_size):
        yield f"size is {has_size}, wanted is {size}"
    # Without a wish the cluster's default class was filled in, whichever that was then.
    wanted, has = desired.get("storageClassName"), live.get("storageClassName")
    if wanted is not None and wanted != has:
        yield f"storage class is {has or 'none'}, wanted is {wanted}"


def _check_job(plan: ServicePlan, rendered: Rendered, live: Mapping[str, Any]) -> None:
    found = annotations_of(live).get(_HASH, "")
    if found == annotations_of(rendered.object)[_HASH]:
        return
    if not found.startswith(DATA_PREFIX) and _brings(plan, live):
        return
    source = annotations_of(live).get(names.ANNOTATION_MODEL_SOURCE, "other weights")
    raise PlanError(
        rendered.step,
        f"{rendered.ref} was made for {source}, the service now needs {plan.source.uri} or keeps it "
        "elsewhere; delete the Job to have the weights downloaded",
    )


def _brings(plan: ServicePlan, job: Mapping[str, Any]) -> bool:
    """Whether a Job that doesn't say what it brings brings what this plan needs.

    One that names the model does. One that is complete also counts where the engine could fetch what is
    missing; where the engine waits for the weights, a guess could make it wait for ever.
    """
    if _names_model(job.get("spec"), plan.source.reference or plan.source.path):
        return True
    optional = plan.prewarm is None or not plan.prewarm.required
    return optional and job_state(job) is JobState.COMPLETE


def _names_model(value: Any, model: str) -> bool:
    if isinstance(value, str):
        return re.search(rf"(?<![\w./:-]){re.escape(model)}(?![\w./:-])", value) is not None
    if isinstance(value, Mapping):
        return any(_names_model(item, model) for item in value.values())
    return isinstance(value, list) and any(_names_model(item, model) for item in value)
