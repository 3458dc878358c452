"""Whether autoscaling works, from the ScaledObject's own conditions and the autoscaler KEDA made for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noctaya_api import names
from noctaya_api.conditions import Reason

from noctaya_operator.diagnose import condition_of
from noctaya_operator.kube.objects import Object, annotations_of, key_of


@dataclass(frozen=True, kw_only=True)
class AutoscalingState:
    """One answer: does it work, and if not why."""

    ready: bool
    reason: Reason
    message: str


def classify_autoscaling(
    scaled_object: Object | None, hpa: Object | None, *, scaler: str, held: bool
) -> AutoscalingState:
    """How autoscaling is.

    Args:
        scaled_object: as it is; None while it waits for the scaler.
        hpa: what KEDA made of it, None while it made nothing.
        scaler: name of the Deployment that answers KEDA.
        held: whether we pause it ourselves: until the weights are there, or for a service to sleep.
    """
    if scaled_object is None:
        message = f"the ScaledObject is made once a Pod of Deployment {scaler} answers KEDA"
        return AutoscalingState(ready=False, reason=Reason.SCALER_NOT_READY, message=message)
    name = key_of(scaled_object).name
    if not held and (how := _paused(scaled_object)):
        return AutoscalingState(
            ready=False,
            reason=Reason.SCALED_OBJECT_PAUSED,
            message=f"ScaledObject {name} is paused {how}",
        )
    ready = condition_of(scaled_object, "Ready")
    if ready.get("status") == "False" and not held:
        return AutoscalingState(
            ready=False,
            reason=Reason.SCALED_OBJECT_NOT_READY,
            message=f"KEDA reports ScaledObject {name} as not ready: {_said(ready)}",
        )
    fallback = condition_of(scaled_object, "Fallback")
    if fallback.get("status") == "True":
        return AutoscalingState(
            ready=False,
            reason=Reason.FALLBACK_METRIC,
            message=f"KEDA scales ScaledObject {name} by a fallback: {_said(fallback)}",
        )
    if hpa is not None and (problem := _of_hpa(hpa)) is not None:
        return problem
    return AutoscalingState(
        ready=True, reason=Reason.SCALED_OBJECT_APPLIED, message=f"ScaledObject {name} is applied"
    )


def _paused(scaled_object: Object) -> str:
    annotations = annotations_of(scaled_object)
    for annotation in (names.ANNOTATION_KEDA_PAUSED_REPLICAS, names.ANNOTATION_KEDA_PAUSED):
        if annotations.get(annotation, "false").lower() != "false":
            return f"by its annotation {annotation}={annotations[annotation]}"
    paused = condition_of(scaled_object, "Paused")
    return f"according to KEDA: {_said(paused)}" if paused.get("status") == "True" else ""


def _of_hpa(hpa: Object) -> AutoscalingState | None:
    name = key_of(hpa).name
    metrics = (hpa.get("spec") or {}).get("metrics") or []
    if metrics and not any(each.get("type") == "External" for each in metrics):
        kinds = ", ".join(sorted({str(each.get("type")) for each in metrics}))
        return AutoscalingState(
            ready=False,
            reason=Reason.FALLBACK_METRIC,
            message=f"HorizontalPodAutoscaler {name} scales by {kinds} and not by the demand of the service",
        )
    for kind in ("AbleToScale", "ScalingActive"):
        condition = condition_of(hpa, kind)
        # At no replicas nothing is to be scaled, and KEDA itself brings the first one.
        if condition.get("status") == "False" and condition.get("reason") != "ScalingDisabled":
            return AutoscalingState(
                ready=False,
                reason=Reason.HPA_NOT_READY,
                message=f"HorizontalPodAutoscaler {name}: {_said(condition)}",
            )
    return None


def _said(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or "no reason given")
