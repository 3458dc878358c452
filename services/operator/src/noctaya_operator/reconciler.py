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
from noctaya_operator.activation_poller import ActivationPoller, addresses_of
from noctaya_operator.cache_volume import READ_WRITE_MANY
from noctaya_operator.defaults import Defaults
from noctaya_operator.download_retry import retry_in
from noctaya_operator.ensure import Ensurer, StepFailed
from noctaya_operator.gateway_notices import GatewayNotices, failure_stands
from noctaya_operator.job_trouble import JobTroubles
from noctaya_operator.kube.controller import DONE, Result
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.objects import Key, Object, deleting, key_of, uid_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.kube.resources import PVCS
from noctaya_operator.live_objects import LiveObjects
from noctaya_operator.malformed import explain
from noctaya_operator.object_names import ObjectNames, ObjectRef
from noctaya_operator.observe import Observer
from noctaya_operator.ownership import check_ownership
from noctaya_operator.plan import PlanError, ServicePlan, plan_service
from noctaya_operator.precedent import find_precedent
from noctaya_operator.prewarm_gate import defers_rollout
from noctaya_operator.prewarm_report import Report
from noctaya_operator.progress_poller import ProgressPoller
from noctaya_operator.pull_times import PullTimes
from noctaya_operator.render import Rendered, render_all
from noctaya_operator.render.demand_auth import new_demand_token
from noctaya_operator.replacement import Replacement, plan_replacements
from noctaya_operator.reporter import Reporter
from noctaya_operator.runtime_catalog import RuntimeCatalog
from noctaya_operator.status import Failure
from noctaya_operator.wish import wish_of

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
    notices: GatewayNotices
    progress: ProgressPoller
    activations: ActivationPoller
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
        objects = self._render(plan, hold=self._parts.observer.holds_back(plan))
        try:
            found = await self._check_names(service, plan, objects)
            replaced = await self._apply(service, plan, objects, found)
        except PlanError as error:
            return await self._refused(service, error.reason, error.message, plan=plan)
        except StepFailed as error:
            return await self._step_failed(service, error, plan)
        return await self._look(service, plan, replaced)

    def _plan(self, service: Object) -> ServicePlan:
        parts = self._parts
        try:
            parsed = LLMService.model_validate({**service, "status": None})
        except ValidationError as error:
            raise PlanError(StepReason.INVALID_SPEC, explain(error)) from error
        pinned = parsed.spec.runtime.name
        if pinned and (why := parts.runtimes.broken.get(pinned)):
            message = f"InferenceRuntime {pinned!r} is not valid: {why}"
            raise PlanError(StepReason.RUNTIME_RESOLUTION, message)
        named = ObjectNames(service=parsed.name, namespace=parsed.namespace)
        job = parts.observer.prewarm_job(named)
        pods = parts.observer.prewarm_pods(named, job)
        precedent = find_precedent(parsed, status.previous_status(service), job=job, pods=pods)
        return plan_service(
            parsed,
            runtimes=parts.runtimes.all(),
            defaults=parts.defaults,
            precedent=precedent,
            wish=wish_of(parsed, now=parts.now()),
        )

    def _render(self, plan: ServicePlan, *, hold: bool) -> tuple[Rendered, ...]:
        own_cache = plan.cache is not None and not plan.cache.shared
        prune = hold and own_cache and plan.service.spec.cache.replace
        return render_all(plan, demand_token=self._parts.new_token(), hold_at_zero=hold, prune=prune)

    async def _check_names(self, service: Object, plan: ServicePlan, objects: Sequence[Rendered]) -> Found:
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

        checks = [*map(check, objects), self._check_shared_claim(plan)]
        for failure in await asyncio.gather(*checks, return_exceptions=True):
            if failure is not None:
                raise failure
        return found

    async def _check_shared_claim(self, plan: ServicePlan) -> None:
        """A claim of others is used as it is, if replicas on every node can."""
        if plan.cache is None or not plan.cache.shared:
            return
        ref = ObjectRef(resource=PVCS, key=Key(plan.names.namespace, plan.cache.claim_name))
        try:
            live = await self._parts.live.fetch(ref)
        except ApiError as error:
            raise StepFailed(StepReason.CACHE, ref, error) from error
        if live is None:
            raise PlanError(StepReason.CACHE, f"cache.claimName: there is no {ref}")
        modes = (live.get("spec") or {}).get("accessModes") or []
        if READ_WRITE_MANY not in modes:
            raise PlanError(
                StepReason.CACHE,
                f"cache.claimName: {ref} has the access mode {'/'.join(modes) or 'none'}; services can share "
                f"only a claim with {READ_WRITE_MANY}",
            )

    async def _apply(
        self, service: Object, plan: ServicePlan, objects: Sequence[Rendered], found: Found
    ) -> Sequence[Replacement]:
        """Write every object that is missing or differs; the ScaledObject only once the scaler answers.

        The ScaledObject is first: a service whose weights are to be replaced is held before anything goes.
        Returns what is being replaced.
        """
        parts = self._parts
        backend, growing = parts.observer.backend(plan), parts.observer.growing_classes()
        busy = backend.present or backend.desired > 0
        replaced = plan_replacements(plan, objects, found=found, growing=growing, busy=busy, now=parts.now())
        if replaced and backend.ready == 0:
            objects = self._render(plan, hold=True)
        kept = {each.ref: each for each in replaced}
        late = [each for each in objects if each.awaits_scaler and found[each.ref] is None]
        for each in objects:
            live = found[each.ref]
            if (replacement := kept.get(each.ref)) is not None:
                if not replacement.waits and live is not None:
                    await parts.ensurer.discard(each, live)
            elif each not in late and not self._deferred(plan, each, live, replacing=bool(replaced)):
                await parts.ensurer.ensure(plan, each, service, live=live, growing=growing)
        await self._sweep(service, plan)
        if late and parts.observer.scaler_answers(plan):
            for each in late:
                await parts.ensurer.ensure(plan, each, service, live=found[each.ref])
        return replaced

    def _deferred(
        self, plan: ServicePlan, rendered: Rendered, live: Object | None, *, replacing: bool
    ) -> bool:
        """Whether a backend that serves goes on as it is until new weights are there."""
        if rendered.ref != plan.names.backend:
            return False
        observer = self._parts.observer
        job = None if replacing else observer.prewarm_job(plan.names)
        ready = observer.backend(plan).ready
        return defers_rollout(plan, job=job, serving_replicas=ready, backend=live)

    async def _sweep(self, service: Object, plan: ServicePlan) -> None:
        """Remove what a former plan left. What no cache holds is asked for once in a process's life."""
        key, state = key_of(service), f"{uid_of(service)} {plan.aggregated} {plan.prewarm is None}"
        ask = self._swept.get(key) != state
        for obsolete in plan.obsolete():
            await self._parts.ensurer.remove(obsolete, service, ask=ask)
        self._swept[key] = state

    async def _look(self, service: Object, plan: ServicePlan, replaced: Sequence[Replacement]) -> Result:
        """Everything is as planned: report how it is."""
        parts, key = self._parts, key_of(service)
        self._failed.pop(key, None)
        before = status.previous_status(service).prewarm
        seen = parts.observer.observe(
            plan, replacing=bool(replaced), told=self._progress(plan, key), before=before
        )
        seen = seen.with_notes(each.note for each in replaced if each.note)
        pulled = await parts.pulls.ended(seen.backend.pods)
        job = parts.observer.prewarm_job(plan.names) if plan.prewarm is not None and not replaced else None
        trouble, ask_again = await parts.troubles.of(job, pods=seen.prewarm_pods)
        seen = seen.with_trouble(trouble)
        told, gateways = parts.activations.told(key), parts.observer.gateway_pods(plan)
        await parts.reporter.report(
            service,
            lambda latest: status.succeeded(latest, plan, seen, pulled=pulled, told=told, now=parts.now()),
        )
        record = status.previous_status(parts.reporter.newest(key) or service).last_activation
        retry = retry_in(plan, job, now=parts.now())
        failing = failure_stands(gateways)
        parts.activations.follow(key, record, addresses_of(gateways), watchful=failing)
        tell_again = await parts.notices.tell(
            service,
            plan,
            seen=seen,
            gateways=gateways,
            going_on=lambda address: parts.activations.going_on(key, address),
            retry=retry,
        )
        recheck = SECRET_RECHECK if plan.aggregated else None
        over = plan.wish.wait(parts.now())
        waits = [wait for wait in (ask_again, tell_again, retry, recheck, over) if wait is not None]
        return Result(requeue_after=min(waits, default=None))

    def _progress(self, plan: ServicePlan, key: Key) -> Report | None:
        """What the agent said last, if one runs."""
        address = self._parts.observer.prewarm_address(plan)
        if address is None:
            self._parts.progress.forget(key)
            return None
        host, port = address
        return self._parts.progress.follow(key, host, port=port)

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
        self._parts.progress.forget(key)
        self._parts.activations.forget(key)
        self._parts.reporter.forget(key)
        return DONE


_NOT_WATCHED: Final = frozenset(
    {StepReason.NAME_CONFLICT, StepReason.DEMAND_AUTHENTICATION, StepReason.CACHE}
)


def _namespace_is_going(error: ApiError) -> bool:
    causes = error.details.get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
