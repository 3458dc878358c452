"""How far a Job is, by its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from noctaya_operator.kube.objects import Object


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


def failure_time(job: Mapping[str, Any]) -> str:
    """When a failed Job was given up, empty when that is not known."""
    return str((_condition(job, "Failed") or {}).get("lastTransitionTime") or "")


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
