"""One pass over one service: decide, check, write what is missing, look, report.

Read `reconcile` first; it is the whole story. A pass that fails says at which step, and comes back: by itself
when the API server was at fault, with the next change when the service, a runtime or a foreign object is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from noctaya_api.conditions import StepReason
from noctaya_api.v1alpha1 import LLMService
from noctaya_api.v1alpha1.llmservice_status import LLMServiceStatus
from pydantic import ValidationError

from noctaya_operator import status
from noctaya_operator.activation_failure import ActivationFailures
from noctaya_operator.defaults import Defaults
from noctaya_operator.ensure import Ensurer, StepFailed
from noctaya_operator.job_trouble import JobTroubles
from noctaya_operator.kube.controller import DONE, Result
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.objects import Key, Object, deleting, key_of, uid_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.malformed import explain
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.observe import Observer
from noctaya_operator.ownership import check_ownership
from noctaya_operator.plan import PlanError, ServicePlan, plan_service
from noctaya_operator.pull_times import PullTimes
from noctaya_operator.render import Rendered, render_all
from noctaya_operator.render.demand_auth import new_demand_token
from noctaya_operator.reporter import Reporter
from noctaya_operator.runtime_catalog import RuntimeCatalog
from noctaya_operator.status import Failure

FOREIGN_RETRY: Final = 60.0
"""Seconds until a name that somebody else holds is looked at again: foreign objects are not watched."""
SECRET_RECHECK: Final = 1800.0
"""Seconds until the demand Secret, which is not watched either, is looked at again."""
PATIENCE: Final = 3
"""Failures in a row of the API server itself before the service's status tells of them."""
KEDA_ABSENT: Final = (
    "the cluster has no kind ScaledObject (keda.sh/v1alpha1): install KEDA; the service goes on by itself"
)


Found = Mapping[ObjectRef, Object | None]
"""The objects of a service as a pass found them; None for a free name."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a reconciler works with."""

    runtimes: RuntimeCatalog
    scaled_objects: Reflector
    live: LiveObjects
    ensurer: Ensurer
    observer: Observer
    reporter: Reporter
    failures: ActivationFailures
    pulls: PullTimes
    troubles: JobTroubles
    defaults: Defaults
    now: Callable[[], datetime]
    new_token: Callable[[], str] = new_demand_token


class ServiceReconciler:
    """Brings services in order, one at a time each."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._failed: dict[Key, int] = {}
        self._swept: dict[Key, str] = {}

    async def reconcile(self, key: Key) -> Result:
        """One pass. Raises `ApiError` when the API server is to be asked again."""
        service = self._parts.reporter.newest(key)
        if service is None or deleting(service):
            return self._forget(key)
        try:
            plan = self._plan(service)
        except PlanError as error:
            return await self._refused(service, error.reason, error.message)
        if self._parts.scaled_objects.absent:
            return await self._without_keda(service, plan)
        objects = render_all(
            plan,
            demand_token=self._parts.new_token(),
            hold_at_zero=self._parts.observer.holds_back(plan),
        )
        try:
            found = await self._check_names(service, objects)
            await self._apply(service, plan, objects, found)
        except PlanError as error:
            return await self._refused(service, error.reason, error.message, plan=plan)
        except StepFailed as error:
            return await self._step_failed(service, error, plan)
        return await self._look(service, plan)

    def _plan(self, service: Object) -> ServicePlan:
        try:
            parsed = LLMService.model_validate({**service, "status": None})
        except ValidationError as error:
            raise PlanError(StepReason.INVALID_SPEC, explain(error)) from error
        pinned = parsed.spec.runtime.name
        if pinned and (why := self._parts.runtimes.broken.get(pinned)):
            message = f"InferenceRuntime {pinned!r} is not valid: {why}"
            raise PlanError(StepReason.RUNTIME_RESOLUTION, message)
        return plan_service(parsed, runtimes=self._parts.runtimes.all(), defaults=self._parts.defaults)

    async def _check_names(self, service: Object, objects: Sequence[Rendered]) -> Found:
        """Nothing is written before it is sure that every name is free or ours."""
        found: dict[ObjectRef, Object | None] = {}

        async def check(each: Rendered) -> None:
            try:
                live = await self._parts.live.get(each.ref)
            except ApiError as error:
                raise StepFailed(each.step, each.ref, error) from error
            if live is not None:
                check_ownership(live, service, ref=each.ref)
            found[each.ref] = live

        results = await asyncio.gather(*map(check, objects), return_exceptions=True)
        for failure in results:
            if failure is not None:
                raise failure
        return found

    async def _apply(
        self, service: Object, plan: ServicePlan, objects: Sequence[Rendered], found: Found
    ) -> None:
        """Write every object that is missing or differs; the ScaledObject only once the scaler answers."""
        parts = self._parts
        late = [each for each in objects if each.awaits_scaler and found[each.ref] is None]
        for each in objects:
            if each not in late:
                await parts.ensurer.ensure(plan, each, service, live=found[each.ref])
        await self._sweep(service, plan)
        if late and parts.observer.scaler_answers(plan):
            for each in late:
                await parts.ensurer.ensure(plan, each, service, live=found[each.ref])

    async def _sweep(self, service: Object, plan: ServicePlan) -> None:
        """Remove what a former plan left. What no cache holds is asked for once in a process's life."""
        key, state = key_of(service), f"{uid_of(service)} {plan.aggregated} {plan.prewarm is None}"
        ask = self._swept.get(key) != state
        for obsolete in plan.obsolete():
            await self._parts.ensurer.remove(obsolete, service, ask=ask)
        self._swept[key] = state

    async def _look(self, service: Object, plan: ServicePlan) -> Result:
        """Everything is as planned: report how it is."""
        parts = self._parts
        self._failed.pop(key_of(service), None)
        seen = parts.observer.observe(plan)
        pulled = await parts.pulls.ended(seen.backend.pods)
        job = parts.live.cached(plan.names.prewarm_job) if plan.prewarm is not None else None
        trouble, ask_again = await parts.troubles.of(job, pods=seen.prewarm_pods)
        seen = seen.with_trouble(trouble)
        await parts.reporter.report(
            service, lambda latest: status.succeeded(latest, plan, seen, pulled=pulled, now=parts.now())
        )
        tell_again = await parts.failures.tell(service, seen, parts.observer.gateway_pods(plan))
        recheck = SECRET_RECHECK if plan.aggregated else None
        waits = [wait for wait in (ask_again, tell_again, recheck) if wait is not None]
        return Result(requeue_after=min(waits, default=None))

    async def _without_keda(self, service: Object, plan: ServicePlan) -> Result:
        parts = self._parts
        seen = parts.observer.observe(plan)

        def compute(latest: Object) -> LLMServiceStatus:
            return status.without_autoscaler(latest, plan, seen, why=KEDA_ABSENT, now=parts.now())

        await parts.reporter.report(service, compute)
        return DONE

    async def _refused(
        self, service: Object, reason: StepReason, message: str, *, plan: ServicePlan | None = None
    ) -> Result:
        """The service, a runtime or a foreign object has to change before another pass makes sense."""
        failure = Failure(reason=reason, message=message, attached=self._attached(reason, plan))
        now = self._parts.now
        await self._parts.reporter.report(service, lambda latest: status.failed(latest, failure, now=now()))
        return Result(requeue_after=FOREIGN_RETRY if reason in _NOT_WATCHED else None)

    async def _step_failed(self, service: Object, error: StepFailed, plan: ServicePlan) -> Result:
        if _namespace_is_going(error.error):
            return DONE
        key = key_of(service)
        self._failed[key] = self._failed.get(key, 0) + 1
        if not error.error.transient or self._failed[key] >= PATIENCE:
            await self._refused(service, error.reason, str(error), plan=plan)
        raise error.error

    def _attached(self, reason: StepReason, plan: ServicePlan | None) -> bool:
        """Whether the ScaledObject was in order in this pass, which takes it first once it is there."""
        if plan is None or reason in {StepReason.NAME_CONFLICT, StepReason.APPLY_SCALED_OBJECT}:
            return False
        return self._parts.live.cached(plan.names.scaled_object) is not None

    def _forget(self, key: Key) -> Result:
        self._failed.pop(key, None)
        self._swept.pop(key, None)
        return DONE


_NOT_WATCHED: Final = frozenset({StepReason.NAME_CONFLICT, StepReason.DEMAND_AUTHENTICATION})


def _namespace_is_going(error: ApiError) -> bool:
    causes = error.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
