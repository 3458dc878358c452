"""Whether a service is kept at no replicas because its weights are not there yet.

A backend that starts before the weights would hold an accelerator while it waits or downloads. So the
autoscaler is paused at zero until the prewarm Job is done - but a backend that already serves is never
stopped for it, and a failed Job stops only a service that can't do without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noctaya_operator.kube.objects import deleting
from noctaya_operator.plan import ServicePlan
from noctaya_operator.precedent import mentions
from noctaya_operator.prewarm_state import JobState, job_state
from noctaya_operator.weights import Way


def holds_back(plan: ServicePlan, *, job: Mapping[str, Any] | None, serving_replicas: int) -> bool:
    """Whether the backend has to stay at no replicas.

    `job` is the prewarm Job as it is now, `serving_replicas` the backend's ready replicas.
    """
    if plan.prewarm is None or serving_replicas > 0:
        return False
    if job is not None and not deleting(job) and job_state(job) is JobState.FAILED:
        return plan.prewarm.required
    return not _weights_there(plan, job)


def defers_rollout(
    plan: ServicePlan,
    *,
    job: Mapping[str, Any] | None,
    serving_replicas: int,
    backend: Mapping[str, Any] | None = None,
) -> bool:
    """Whether the backend's Pods should stay as they are although the plan may change them.

    After a change of the model the replicas that serve keep the old one until the new weights are there; new
    Pods could only wait for them, on accelerators. `job` is the Job as it was accepted or made, so that it is
    known to bring the weights of this plan; `backend` is the Deployment as it is: when its Pods read the same
    directory already, the weights are there whatever became of the Job.
    """
    if plan.prewarm is None or serving_replicas == 0 or _weights_there(plan, job):
        return False
    if plan.prewarm.way is Way.HUB_CACHE:
        return plan.prewarm.required
    return backend is None or not mentions(backend.get("spec"), plan.prewarm.target)


def _weights_there(plan: ServicePlan, job: Mapping[str, Any] | None) -> bool:
    """Whether the Job is done, and says where its weights are if nobody else does."""
    done = job is not None and not deleting(job) and job_state(job) is JobState.COMPLETE
    return done and not plan.source.tag
