"""The status of an LLMService: phase, conditions, and what else is true of it.

Pure: the status is computed from the plan, what was observed and the status before, of which only the times
of unchanged conditions, the activation going on and - when a pass failed - the last known facts stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from noctaya_api import names
from noctaya_api.conditions import ConditionStatus, ConditionType, KeepReason, Phase, Reason, StepReason
from noctaya_api.gateway_activations import ListedActivation
from noctaya_api.v1alpha1.base import Condition
from noctaya_api.v1alpha1.llmservice_status import (
    RECENT_ACTIVATIONS,
    ActivationRecord,
    LLMServiceStatus,
    ModelStatus,
    PrewarmStatus,
)
from pydantic import ValidationError

from noctaya_operator.activation_record import Seen, follow_activation
from noctaya_operator.kube.objects import Object, generation_of
from noctaya_operator.observe import Observation
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_state import JobState
from noctaya_operator.wish_report import asleep_message, keep_status, kept


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A pass that did not go through."""

    reason: StepReason
    message: str
    attached: bool = False
    """Whether the ScaledObject was in order in this pass."""


@dataclass(frozen=True, kw_only=True)
class _Aspect:
    holds: bool
    reason: str
    message: str


def previous_status(service: Mapping[str, Any]) -> LLMServiceStatus:
    """The status as stored, empty when there is none or it can't be read."""
    try:
        return LLMServiceStatus.model_validate(service.get("status") or {})
    except ValidationError:
        return LLMServiceStatus()


def succeeded(
    service: Object,
    plan: ServicePlan,
    seen: Observation,
    *,
    now: datetime,
    pulled: Mapping[str, str] | None = None,
    told: Sequence[ListedActivation] = (),
) -> LLMServiceStatus:
    """The status after a pass in which everything is as planned.

    `pulled` is when the images of Pods were there, by the Pod's name, `told` what gateways tell of their
    activations.
    """
    before, phase = previous_status(service), _phase(plan, seen)
    autoscaling = _Aspect(
        holds=seen.autoscaling.ready,
        reason=seen.autoscaling.reason,
        message="; ".join((seen.autoscaling.message, *plan.notes, *seen.notes)),
    )
    aspects = {
        ConditionType.READY: _ready(phase, plan, seen),
        ConditionType.DEGRADED: _degraded(phase, seen),
        ConditionType.AUTOSCALING_READY: autoscaling,
        ConditionType.KEPT: _kept(plan, seen),
    }
    followed = activation_seen(seen, pulled or {}, told, was_cold=_was_cold(before))
    activation = follow_activation(before.last_activation, followed, now)
    return LLMServiceStatus(
        observed_generation=generation_of(service),
        phase=phase,
        resolved_runtime=plan.runtime.name,
        replicas=seen.backend.ready,
        endpoint_url=names.endpoint_url(plan.names.service, plan.names.namespace),
        conditions=_conditions(before, aspects, generation=generation_of(service), now=now),
        model=_model(before, plan, seen),
        prewarm=seen.prewarm,
        keep=keep_status(plan),
        last_activation=activation,
        recent_activations=_recent(before, activation),
    )


def failed(service: Object, failure: Failure, *, now: datetime) -> LLMServiceStatus:
    """The status after a pass that failed; what was known of the service before stays."""
    before = previous_status(service)
    applied = _Aspect(holds=True, reason=Reason.SCALED_OBJECT_APPLIED, message="the ScaledObject is applied")
    refused = _Aspect(holds=False, reason=failure.reason, message=failure.message)
    aspects = {
        ConditionType.READY: refused,
        ConditionType.DEGRADED: _Aspect(holds=True, reason=failure.reason, message=failure.message),
        ConditionType.AUTOSCALING_READY: applied if failure.attached else refused,
    }
    return before.model_copy(
        update={
            "observed_generation": generation_of(service),
            "phase": Phase.DEGRADED,
            "conditions": _conditions(before, aspects, generation=generation_of(service), now=now),
        }
    )


def without_autoscaler(
    service: Object, plan: ServicePlan, seen: Observation, *, why: str, now: datetime
) -> LLMServiceStatus:
    """The status of a service whose autoscaler is not installed: a backend that serves still serves."""
    failure = Failure(reason=StepReason.AUTOSCALING_UNAVAILABLE, message=why)
    status = failed(service, failure, now=now)
    if seen.backend.ready == 0:
        return status.model_copy(update={"replicas": 0})
    aspects = {
        ConditionType.READY: _ready(Phase.READY, plan, seen),
        ConditionType.DEGRADED: _Aspect(holds=True, reason=failure.reason, message=why),
        ConditionType.AUTOSCALING_READY: _Aspect(holds=False, reason=failure.reason, message=why),
    }
    conditions = _conditions(previous_status(service), aspects, generation=generation_of(service), now=now)
    return status.model_copy(
        update={
            "phase": Phase.READY,
            "resolved_runtime": plan.runtime.name,
            "replicas": seen.backend.ready,
            "endpoint_url": names.endpoint_url(plan.names.service, plan.names.namespace),
            "conditions": conditions,
        }
    )


def activation_seen(
    seen: Observation,
    pulled: Mapping[str, str],
    told: Sequence[ListedActivation] = (),
    *,
    was_cold: bool = False,
) -> Seen:
    """What an activation is followed by."""
    return Seen(
        demanded=seen.demanded and not seen.held and not seen.asleep,
        desired=seen.backend.desired,
        ready=seen.backend.ready,
        pods=seen.backend.pods,
        pulled=pulled,
        problem=seen.finding.message if seen.finding.hard else None,
        gateways=told,
        was_cold=was_cold,
    )


def _was_cold(before: LLMServiceStatus) -> bool:
    """Whether it was seen that nothing was ready; a pass that failed may not have looked."""
    return before.phase not in {None, Phase.DEGRADED} and not before.replicas


def _recent(before: LLMServiceStatus, activation: ActivationRecord | None) -> list[ActivationRecord]:
    """The activations before the last one; a new one moves the former there."""
    last = before.last_activation
    if last is None or last.ended is None or (activation is not None and activation.ended is not None):
        return before.recent_activations
    return [last, *before.recent_activations][:RECENT_ACTIVATIONS]


def _model(before: LLMServiceStatus, plan: ServicePlan, seen: Observation) -> ModelStatus | None:
    """What the URI stands for, as far as a download has told."""
    uri = plan.source.uri
    known = before.model if before.model is not None and before.model.uri == uri else None
    given = plan.service.spec.model.source
    digest = f"sha256:{plan.source.digest}" if given is not None and given.allow_tags else None
    if digest is None or plan.source.tag or given is None or not given.parsed().tag:
        digest = known.digest if known is not None else None
    revision = known.revision if known is not None else None
    if plan.source.is_hub and seen.job is JobState.COMPLETE and seen.prewarm is not None:
        revision = seen.prewarm.revision or revision
    return ModelStatus(uri=uri, revision=revision, digest=digest) if revision or digest else None


def _phase(plan: ServicePlan, seen: Observation) -> Phase:
    if seen.backend.ready > 0:
        return Phase.READY
    if seen.finding.hard or seen.job is JobState.FAILED:
        return Phase.DEGRADED
    if seen.held:
        return Phase.PREWARMING
    if seen.backend.replicas > 0 or seen.backend.pods:
        return Phase.LOADING
    if (plan.scaling.minimum == 0 or seen.asleep) and seen.attached:
        return Phase.SCALED_TO_ZERO
    return Phase.PENDING


def _ready(phase: Phase, plan: ServicePlan, seen: Observation) -> _Aspect:
    match phase:
        case Phase.READY:
            count = seen.backend.ready
            return _Aspect(
                holds=True,
                reason=Reason.AVAILABLE,
                message=f"{count} replica{'s are' if count > 1 else ' is'} ready",
            )
        case Phase.SCALED_TO_ZERO:
            return _at_zero(plan, seen)
        case Phase.PREWARMING:
            return _Aspect(holds=False, reason=Reason.PREWARMING, message=_progress(seen.prewarm))
        case Phase.PENDING:
            message = "no replica was started yet"
            if not seen.attached:
                message = f"no replica is started: {seen.autoscaling.message}"
            return _Aspect(holds=False, reason=Reason.PENDING, message=message)
    if not seen.finding.hard and seen.job is JobState.FAILED:
        return _Aspect(holds=False, reason=StepReason.PREWARM_FAILED, message=prewarm_failure(seen.prewarm))
    return _Aspect(holds=False, reason=seen.finding.reason, message=seen.finding.message)


def _at_zero(plan: ServicePlan, seen: Observation) -> _Aspect:
    if seen.asleep:
        message = f"{asleep_message(plan.wish.keep)}; requests are refused"
        return _Aspect(holds=False, reason=KeepReason.ASLEEP, message=message)
    message = "no replica runs; the next request starts one"
    return _Aspect(holds=False, reason=Reason.SCALED_TO_ZERO, message=message)


def _kept(plan: ServicePlan, seen: Observation) -> _Aspect | None:
    found = kept(plan, seen)
    return None if found is None else _Aspect(holds=found.holds, reason=found.reason, message=found.message)


def _degraded(phase: Phase, seen: Observation) -> _Aspect:
    if seen.finding.hard:
        return _Aspect(holds=True, reason=seen.finding.reason, message=seen.finding.message)
    if seen.job is JobState.FAILED:
        message = prewarm_failure(seen.prewarm)
        return _Aspect(holds=True, reason=StepReason.PREWARM_FAILED, message=message)
    if phase is Phase.SCALED_TO_ZERO:
        return _Aspect(holds=False, reason=Reason.INACTIVE, message="nothing runs that could fail")
    if phase is Phase.READY:
        return _Aspect(holds=False, reason=Reason.HEALTHY, message="nothing is wrong")
    return _Aspect(holds=False, reason=Reason.PROGRESSING, message="nothing is wrong so far")


def _conditions(
    before: LLMServiceStatus,
    aspects: Mapping[ConditionType, _Aspect | None],
    *,
    generation: int,
    now: datetime,
) -> list[Condition]:
    known = {condition.type: condition for condition in before.conditions}
    conditions = []
    for kind, aspect in aspects.items():
        old = known.pop(kind, None)
        if aspect is None:
            continue
        status = ConditionStatus.TRUE if aspect.holds else ConditionStatus.FALSE
        changed = old is None or old.status is not status
        conditions.append(
            Condition(
                type=kind,
                status=status,
                reason=aspect.reason,
                message=aspect.message[:MESSAGE_LIMIT],
                last_transition_time=_seconds(now) if changed or old is None else old.last_transition_time,
                observed_generation=generation,
            )
        )
    # Conditions of others stay.
    return [*conditions, *known.values()]


MESSAGE_LIMIT = 2048
"""Characters; the API allows 32768, but nobody reads that, and some messages quote what a Pod printed."""


def _seconds(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _progress(prewarm: PrewarmStatus | None) -> str:
    message = "no replica is started before the weights are there"
    if prewarm is None:
        return message
    if prewarm.bytes_done is not None:
        of = f" of {size_text(prewarm.bytes_total)}" if prewarm.bytes_total is not None else ""
        message += f": {size_text(prewarm.bytes_done)}{of} downloaded"
    if prewarm.eta_seconds is not None:
        message += f", about {duration_text(prewarm.eta_seconds)} left"
    if prewarm.message:
        message += f" ({prewarm.message})"
    return message


def duration_text(seconds: int) -> str:
    """Seconds as people say them, rounded so that it does not change all the time."""
    if seconds < 60:
        return f"{max(10, -(-seconds // 10) * 10)} s"
    return f"{-(-seconds // 60)} min" if seconds < 7200 else f"{-(-seconds // 3600)} h"


def prewarm_failure(prewarm: PrewarmStatus | None) -> str:
    """Why there are no weights, and what to do."""
    why = prewarm.message if prewarm is not None and prewarm.message else "its Job failed"
    return f"the weights could not be downloaded: {why}; delete the Job to have it tried at once"


def size_text(count: int | None) -> str:
    """Bytes as people say them."""
    amount = float(count or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
