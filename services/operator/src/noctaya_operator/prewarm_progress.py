"""The part of a service's status that tells of its download: from the Job, its Pods and what the agent says.

A Job that failed takes its Pod with it, and with the Pod what the agent said last. So what was known of the
same Job stays until something newer is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import ObservationReason
from noctaya_api.v1alpha1.llmservice_status import PrewarmState, PrewarmStatus

from noctaya_operator.diagnose import Finding, active, diagnose_pod
from noctaya_operator.kube.objects import Object
from noctaya_operator.prewarm_report import BEFORE, Report, last_report
from noctaya_operator.prewarm_state import JobState, failure_message, failure_time, job_state

_QUIET: Final = frozenset({ObservationReason.STARTING, ObservationReason.MODEL_LOADING})
_OF_A_FAILURE: Final = ("code", "reason", "message")
_OF_NOW: Final = ("bytes_per_second", "current_file", "eta_seconds")


def prewarm_status(
    job: Object | None,
    pods: Sequence[Object],
    *,
    told: Report | None = None,
    before: PrewarmStatus | None = None,
) -> PrewarmStatus:
    """Progress of a prewarm Job.

    Args:
        job: as it is; None while there is none.
        pods: its Pods, those that are over too.
        told: what the agent answered while it ran.
        before: the status as it was.
    """
    state = job_state(job)
    status = (job or {}).get("status")
    status = status if isinstance(status, Mapping) else {}
    running = [pod for pod in pods if active(pod)]
    findings = sorted(diagnose_pod(pod, container=names.CONTAINER_PREWARM) for pod in running)
    left = last_report(pods)
    known: dict[str, Any] = {}
    same = before is not None and before.started_at == status.get("startTime")
    if same and before is not None:
        known = {field.name: getattr(before, field.name, None) for field in fields(Report)}
        if before.code is None:
            # Not the agent's own words but why it could not start; that is looked at anew.
            known |= dict.fromkeys(_OF_A_FAILURE)
    known |= _said(left)
    if told is not None:
        known |= {**dict.fromkeys(_OF_NOW), **_said(told)}
    if state is not JobState.RUNNING or told is None:
        known |= dict.fromkeys(_OF_NOW)
    if state is JobState.COMPLETE or not (left is None or left.failure):
        known |= dict.fromkeys(_OF_A_FAILURE)
    if (why := _message(state, job, findings, said=known.get("message"))) is not None:
        known["message"] = why
    known.pop("digest", None)
    return PrewarmStatus(
        state=_state(state, running),
        started_at=status.get("startTime"),
        finished_at=_finished(job, status),
        node=_node(pods) or (before.node if same and before is not None else None),
        **known,
    )


def _said(report: Report | None) -> dict[str, Any]:
    values = {field.name: getattr(report, field.name) for field in fields(Report)} if report else {}
    return {name: value for name, value in values.items() if value not in {None, ""}}


def _state(state: JobState, pods: Sequence[Object]) -> PrewarmState:
    match state:
        case JobState.COMPLETE:
            return PrewarmState.COMPLETE
        case JobState.FAILED:
            return PrewarmState.FAILED
    return PrewarmState.RUNNING if any(map(_works, pods)) else PrewarmState.PENDING


def _works(pod: Object) -> bool:
    """Whether the agent runs, or what brings an artifact before it."""
    if any(init_container_runs(pod, name) for name in BEFORE):
        return True
    return _runs(pod, "containerStatuses", names.CONTAINER_PREWARM)


def init_container_runs(pod: Mapping[str, Any], name: str) -> bool:
    """Whether an init container of a Pod runs at the moment."""
    return _runs(pod, "initContainerStatuses", name)


def _runs(pod: Mapping[str, Any], field: str, name: str) -> bool:
    entries = (pod.get("status") or {}).get(field)
    return any(
        isinstance(entry, Mapping)
        and entry.get("name") == name
        and (entry.get("state") or {}).get("running") is not None
        for entry in (entries if isinstance(entries, list) else ())
    )


def _finished(job: Object | None, status: Mapping[str, Any]) -> str | None:
    if status.get("completionTime"):
        return str(status["completionTime"])
    return failure_time(job) or None if job is not None and job_state(job) is JobState.FAILED else None


def _message(
    state: JobState, job: Object | None, findings: Sequence[Finding], *, said: str | None
) -> str | None:
    """Why the download failed or waits; what the agent said tells more than its Job or Pod."""
    if said:
        return said
    if state is JobState.FAILED and job is not None:
        return failure_message(job) or None
    if state is JobState.RUNNING and findings and findings[0].reason not in _QUIET:
        return findings[0].message
    return None


def _node(pods: Sequence[Object]) -> str | None:
    return next(
        (str(pod["spec"]["nodeName"]) for pod in pods if (pod.get("spec") or {}).get("nodeName")), None
    )
