"""The status of an InferenceRuntime: how many services use it, and what is wrong with it.

What is wrong is found out by planning: a runtime is usable when a service that asks for nothing special can
be planned with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from noctaya_api.conditions import ConditionStatus, RuntimeConditionType, RuntimeReason, StepReason
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_api.v1alpha1.base import Condition
from noctaya_api.v1alpha1.inference_runtime import InferenceRuntimeStatus
from pydantic import ValidationError

from noctaya_operator.caches import BY_RUNTIME, Caches
from noctaya_operator.defaults import Defaults
from noctaya_operator.kinds import INFERENCE_RUNTIMES, LLM_SERVICES
from noctaya_operator.kube.controller import DONE, Result
from noctaya_operator.kube.errors import Invalid
from noctaya_operator.kube.objects import Key, Object, deleting, generation_of, key_of
from noctaya_operator.kube.workqueue import WorkQueue
from noctaya_operator.malformed import explain
from noctaya_operator.plan import PlanError, plan_service
from noctaya_operator.publish import StatusWriter

log = logging.getLogger(__name__)

SETTLE: Final = 10.0
"""Seconds that changes of the number of services wait for each other: while many come or go, each count is
soon another one."""


class RuntimeReconciler:
    """Writes the status of runtimes.

    Args:
        caches: services and runtimes.
        writer: writes the status.
        defaults: of the operator, for planning.
        now: wall clock.
    """

    def __init__(
        self, caches: Caches, writer: StatusWriter, *, defaults: Defaults, now: Callable[[], datetime]
    ) -> None:
        self._services = caches.reflectors[LLM_SERVICES].cache
        self._writer = writer
        self._defaults = defaults
        self._now = now

    async def reconcile(self, key: Key) -> Result:
        """Bring the status of one runtime up to date. Raises `ApiError`."""
        runtime = self._writer.newest(key)
        if runtime is None or deleting(runtime):
            return DONE
        count = len(self._services.by_index(BY_RUNTIME, key.name))
        problem = find_problem(runtime, self._defaults)
        try:
            await self._writer.publish(
                runtime, lambda latest: runtime_status(latest, count, problem, now=self._now()).manifest()
            )
        except Invalid as error:
            # Stored before the API server had the rules it can't evaluate on it; services name it and say so.
            log.warning("InferenceRuntime %s takes no status: %s", key.name, error.message)
        return DONE


def find_problem(runtime: Object, defaults: Defaults) -> tuple[str, str] | None:
    """Reason and message of what makes a runtime unusable, None when nothing does."""
    try:
        parsed = InferenceRuntime.model_validate({**runtime, "status": None})
    except ValidationError as error:
        return StepReason.INVALID_SPEC, explain(error)
    try:
        plan_service(_anything(parsed.name), runtimes=[parsed], defaults=defaults)
    except PlanError as error:
        return error.reason, error.message
    return None


def runtime_status(
    runtime: Object, services: int, problem: tuple[str, str] | None, *, now: datetime
) -> InferenceRuntimeStatus:
    """The status a runtime should have."""
    try:
        before = InferenceRuntimeStatus.model_validate(runtime.get("status") or {})
    except ValidationError:
        before = InferenceRuntimeStatus()
    reason, message = problem or (RuntimeReason.VALID, "services can be served by this runtime")
    status = ConditionStatus.FALSE if problem else ConditionStatus.TRUE
    kind = RuntimeConditionType.USABLE
    old = next((each for each in before.conditions if each.type == kind), None)
    same = old is not None and old.status is status
    condition = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=old.last_transition_time
        if same and old is not None
        else now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        observed_generation=generation_of(runtime),
    )
    others = [each for each in before.conditions if each.type != kind]
    return InferenceRuntimeStatus(
        observed_generation=generation_of(runtime), services=services, conditions=[condition, *others]
    )


def route_runtimes(caches: Caches, queue: WorkQueue[Key]) -> None:
    """Queue a runtime when it changes, or when a service begins or ends to use it."""

    def runtime_changed(old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old.get("spec") != new.get("spec")):
            queue.add(key_of(new))

    def service_changed(old: Object | None, new: Object | None) -> None:
        before, after = _used(old), _used(new)
        if before != after:
            for name in {before, after} - {""}:
                queue.add_after(Key("", name), SETTLE)

    caches.reflectors[INFERENCE_RUNTIMES].subscribe(runtime_changed)
    caches.reflectors[LLM_SERVICES].subscribe(service_changed)


def _used(service: Object | None) -> str:
    return str(((service or {}).get("status") or {}).get("resolvedRuntime") or "")


def _anything(runtime: str) -> LLMService:
    return LLMService.model_validate(
        {
            "metadata": {"name": "any", "namespace": "any"},
            "spec": {"model": {"source": {"uri": "hf://any/model"}}, "runtime": {"name": runtime}},
        }
    )
