"""Whether a service is kept at no replicas because its weights are not there yet.

A backend that starts before the weights would hold an accelerator while it waits or downloads. So the
autoscaler is paused at zero until the prewarm Job is done - but a backend that already serves is never
stopped for it, and a failed Job stops only a service that can't do without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan


class JobState(StrEnum):
    """How far a Job is."""

    ABSENT = "Absent"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


def job_state(job: Mapping[str, Any] | None) -> JobState:
    """State of a Job by its conditions."""
    if job is None:
        return JobState.ABSENT
    if _condition(job, "Complete") is not None:
        return JobState.COMPLETE
    return JobState.RUNNING if _condition(job, "Failed") is None else JobState.FAILED


def failure_message(job: Mapping[str, Any]) -> str:
    """What Kubernetes says about a failed Job, empty when it says nothing."""
    condition = _condition(job, "Failed") or {}
    return str(condition.get("message") or condition.get("reason") or "")


def holds_back(plan: ServicePlan, *, job: Mapping[str, Any] | None, serving_replicas: int) -> bool:
    """Whether the backend has to stay at no replicas.

    `job` is the prewarm Job as it is now, `serving_replicas` the backend's ready replicas.
    """
    if plan.prewarm is None or serving_replicas > 0:
        return False
    state = job_state(job)
    if state is JobState.FAILED:
        return plan.prewarm.required
    return state is not JobState.COMPLETE


def defers_rollout(plan: ServicePlan, *, job: Mapping[str, Any] | None, serving_replicas: int) -> bool:
    """Whether the backend's Pods should stay as they are although the plan changes them.

    After a change of the model the replicas that serve keep the old one until the new weights are there; new
    Pods could only wait for them, on accelerators. `job` is the Job as `judge` accepted or made it, so that
    it is known to bring the weights of this plan.
    """
    if plan.prewarm is None or not plan.prewarm.required or serving_replicas == 0:
        return False
    return job_state(job) is not JobState.COMPLETE


def _condition(job: Mapping[str, Any], kind: str) -> Object | None:
    status = job.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if (
            isinstance(condition, dict)
            and condition.get("type") == kind
            and condition.get("status") == "True"
        ):
            return condition
    return None
