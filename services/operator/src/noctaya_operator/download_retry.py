"""When a download that failed is tried again by itself.

A Job makes a few attempts, some seconds apart, and is then over for good. What made them fail - a hub that is
down, a token without access, a wrong address - is often put right where nobody can see it from here. So a Job
that a service can't do without is made anew, after a pause as long as it had tried: what fails at once is
looked at often, what ran into the silence of a hub is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from noctaya_operator.kube.objects import deleting, metadata_of
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_state import JobState, failure_time, job_state

SHORTEST: Final = 30.0
LONGEST: Final = 3600.0
"""Seconds of a pause, at least and at most."""


def retry_in(plan: ServicePlan, job: Mapping[str, Any] | None, *, now: datetime) -> float | None:
    """Seconds until the failed Job is to be made anew, 0 when it is time; None when it is not to be.

    A download that only is a head start is not tried again: the engine fetches for itself by then.
    """
    if plan.prewarm is None or not plan.prewarm.required:
        return None
    if job is None or deleting(job) or job_state(job) is not JobState.FAILED:
        return None
    failed = _moment(failure_time(job))
    if failed is None:
        return SHORTEST
    status = job.get("status")
    started = _moment(status.get("startTime")) if isinstance(status, Mapping) else None
    started = started or _moment(metadata_of(job).get("creationTimestamp")) or failed
    pause = min(LONGEST, max(SHORTEST, (failed - started).total_seconds()))
    return max(0.0, pause - (now - failed).total_seconds())


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
