"""Whose an existing object is.

An object is ours when this very LLMService controls it. A retained cache claim has no controller; it belongs
to whichever service of its namespace and name comes, and says so by its labels and an annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import StepReason

from noctaya_operator.kube.objects import (
    Object,
    annotations_of,
    controlled_by,
    controller_of,
    key_of,
    labels_of,
    owner_reference,
    owner_references_of,
    resource_version_of,
    uid_of,
)
from noctaya_operator.kube.resources import PVCS
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.plan_error import PlanError

TRUE: Final = "true"


def belongs_to(live: Mapping[str, Any], owner: Mapping[str, Any], *, ref: ObjectRef) -> bool:
    """Whether `live`, found under `ref`, is this service's."""
    if controlled_by(live, owner):
        return True
    return ref.resource == PVCS and controller_of(live) is None and _retained_for(live, key_of(owner).name)


def check_ownership(live: Mapping[str, Any], owner: Mapping[str, Any], *, ref: ObjectRef) -> None:
    """Raises PlanError when `live` is somebody else's: it is neither changed nor used."""
    if belongs_to(live, owner, ref=ref):
        return
    controller = controller_of(live)
    whose = (
        f"is controlled by {controller.get('kind')} {controller.get('name')}" if controller else "is there"
    )
    hint = "delete or rename it, or give the service another name"
    if ref.resource == PVCS and controller is None:
        hint = (
            f"delete it, or hand it over with the labels {names.LABEL_MANAGED_BY}={names.MANAGED_BY} and "
            f"{names.LABEL_LLMSERVICE}={key_of(owner).name} and the annotation "
            f"{names.ANNOTATION_RETAIN}={TRUE}"
        )
    raise PlanError(StepReason.NAME_CONFLICT, f"{ref} {whose} and was not made for this service; {hint}")


def control_patch(live: Mapping[str, Any], owner: Mapping[str, Any], *, controlled: bool) -> Object:
    """The metadata that gives an object of ours a controller or takes it away; empty when it is as wanted."""
    if controlled == controlled_by(live, owner):
        return {}
    others = [dict(entry) for entry in owner_references_of(live) if entry.get("uid") != uid_of(owner)]
    return {
        "ownerReferences": [*others, owner_reference(owner)] if controlled else others,
        "annotations": {names.ANNOTATION_RETAIN: None if controlled else TRUE},
    }


def merge_patch(live: Mapping[str, Any], metadata: Mapping[str, Any]) -> Object:
    """Merge patch of metadata that fails with a conflict if the object changed meanwhile."""
    lock = {"uid": uid_of(live), "resourceVersion": resource_version_of(live)}
    return {"metadata": {**lock, **metadata}}


def _retained_for(live: Mapping[str, Any], service: str) -> bool:
    labels = labels_of(live)
    return (
        labels.get(names.LABEL_MANAGED_BY) == names.MANAGED_BY
        and labels.get(names.LABEL_LLMSERVICE) == service
        and annotations_of(live).get(names.ANNOTATION_RETAIN) == TRUE
    )
