"""How far the download of the weights is, from its Job and what the agent's container last said.

The agent has no credentials of the cluster. What it knows - bytes, rate, file - it writes as JSON into its
termination message, which the kubelet shows in the Pod's status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import ObservationReason
from noctaya_api.v1alpha1.llmservice_status import PrewarmState, PrewarmStatus

from noctaya_operator.diagnose import Finding, diagnose_pod
from noctaya_operator.kube.objects import Object
from noctaya_operator.prewarm_gate import JobState, failure_message, job_state

_COUNTS: Final = {
    "bytesDone": "bytes_done",
    "bytesTotal": "bytes_total",
    "bytesPerSecond": "bytes_per_second",
}
_QUIET: Final = frozenset({ObservationReason.STARTING, ObservationReason.MODEL_LOADING})


def prewarm_status(job: Object | None, pods: Sequence[Object]) -> PrewarmStatus:
    """Progress of the prewarm Job with its active Pods."""
    state = job_state(job)
    report = _report(pods)
    status = (job or {}).get("status")
    status = status if isinstance(status, Mapping) else {}
    findings = sorted(diagnose_pod(pod, container=names.CONTAINER_PREWARM) for pod in pods)
    return PrewarmStatus(
        state=_state(state, pods, findings),
        started_at=status.get("startTime"),
        finished_at=_finished(job, status),
        message=_message(state, job, findings),
        **report,
    )


def _state(state: JobState, pods: Sequence[Object], findings: Sequence[Finding]) -> PrewarmState:
    match state:
        case JobState.COMPLETE:
            return PrewarmState.COMPLETE
        case JobState.FAILED:
            return PrewarmState.FAILED
    running = bool(pods) and findings[0].reason is ObservationReason.MODEL_LOADING
    return PrewarmState.RUNNING if running else PrewarmState.PENDING


def _finished(job: Object | None, status: Mapping[str, Any]) -> str | None:
    if status.get("completionTime"):
        return str(status["completionTime"])
    if job_state(job) is JobState.FAILED:
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Failed" and condition.get("lastTransitionTime"):
                return str(condition["lastTransitionTime"])
    return None


def _message(state: JobState, job: Object | None, findings: Sequence[Finding]) -> str | None:
    if state is JobState.FAILED and job is not None:
        return failure_message(job) or None
    if state is JobState.RUNNING and findings and findings[0].reason not in _QUIET:
        return findings[0].message
    return None


def _report(pods: Sequence[Object]) -> dict[str, Any]:
    for pod in pods:
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            if status.get("name") != names.CONTAINER_PREWARM:
                continue
            for state in (status.get("state"), status.get("lastState")):
                said = ((state or {}).get("terminated") or {}).get("message")
                if parsed := _parsed(said):
                    return parsed
    return {}


def _parsed(said: object) -> dict[str, Any]:
    try:
        values = json.loads(said) if isinstance(said, str) else None
    except ValueError:
        return {}
    if not isinstance(values, dict):
        return {}
    found: dict[str, Any] = {
        field: values[name]
        for name, field in _COUNTS.items()
        if isinstance(values.get(name), int) and not isinstance(values[name], bool) and values[name] >= 0
    }
    if isinstance(values.get("currentFile"), str):
        found["current_file"] = values["currentFile"]
    return found
