"""All objects of one service in the order they are applied, each with its way of being written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from noctaya_api.conditions import StepReason

from noctaya_operator.kube.objects import Object
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render.autoscaling import render_scaled_object
from noctaya_operator.render.backend import render_backend
from noctaya_operator.render.cache import render_claim
from noctaya_operator.render.demand_auth import render_demand_secret
from noctaya_operator.render.gateway import render_gateway, render_gateway_pdb
from noctaya_operator.render.prewarm import render_prewarm_job
from noctaya_operator.render.scaler import render_scaler
from noctaya_operator.render.services import (
    render_backend_pods_service,
    render_backend_service,
    render_public_service,
    render_scaler_service,
)


class WriteMode(StrEnum):
    """How an object gets into the cluster and what happens when it is already there."""

    APPLY = "Apply"
    """Server-side apply whenever a field we set differs."""
    CREATE_AT_ZERO = "CreateAtZero"
    """Created once with `spec.replicas: 0` under the field manager `names.CREATE_FIELD_MANAGER`, then like
    APPLY. The object never has the field: whatever we apply, KEDA keeps it."""
    CREATE_ONCE = "CreateOnce"
    """Created; an existing one is judged by `create_once.judge` and never changed in its spec."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """One object and how it is written."""

    ref: ObjectRef
    object: Object
    mode: WriteMode
    step: StepReason
    """Step reason of a failure to write it."""
    controlled: bool = True
    """Whether it gets a controller reference to the service, and so goes with it."""
    awaits_scaler: bool = False
    """Created only once the scaler answers; an existing one is applied in its place in the order."""


def render_all(
    plan: ServicePlan, *, demand_token: str, hold_at_zero: bool = False, prune: bool = False
) -> tuple[Rendered, ...]:
    """Every object of the plan, in apply order.

    `demand_token` is a fresh token (`demand_auth.new_demand_token`), used only if the Secret doesn't exist
    yet. `hold_at_zero` pauses the autoscaler at no replicas: the weights are not there
    (`prewarm_gate.holds_back`). `prune` has a new download remove former weights.
    """
    names = plan.names
    found = [
        Rendered(
            ref=names.scaled_object,
            object=render_scaled_object(plan, hold_at_zero=hold_at_zero),
            mode=WriteMode.APPLY,
            step=StepReason.APPLY_SCALED_OBJECT,
            awaits_scaler=True,
        )
    ]
    if plan.aggregated:
        secret = render_demand_secret(plan, token=demand_token)
        found.append(_once(names.demand_secret, secret, StepReason.APPLY_DEMAND_AUTHENTICATION))
    if plan.cache is not None and plan.cache.claim is not None:
        claim = plan.cache.claim
        found.append(
            _once(
                names.cache_claim,
                render_claim(plan, claim),
                StepReason.APPLY_CACHE_PVC,
                controlled=not claim.retain,
            )
        )
    if plan.prewarm is not None:
        job = render_prewarm_job(plan, plan.prewarm, prune=prune)
        found.append(_once(names.prewarm_job, job, StepReason.APPLY_PREWARM_JOB))
    found += [
        Rendered(
            ref=names.backend,
            object=render_backend(plan),
            mode=WriteMode.CREATE_AT_ZERO,
            step=StepReason.APPLY_DEPLOYMENT,
        ),
        _applied(names.backend_service, render_backend_service(plan), StepReason.APPLY_BACKEND_SERVICE),
        _applied(names.backend_pods, render_backend_pods_service(plan), StepReason.APPLY_BACKEND_SERVICE),
        _applied(names.gateway, render_gateway(plan), StepReason.APPLY_GATEWAY),
        _applied(names.public_service, render_public_service(plan), StepReason.APPLY_GATEWAY_SERVICE),
    ]
    if plan.aggregated:
        found += [
            _applied(names.gateway_pdb, render_gateway_pdb(plan), StepReason.APPLY_GATEWAY_PDB),
            _applied(names.scaler, render_scaler(plan), StepReason.APPLY_GATEWAY_SCALER),
        ]
    service = render_scaler_service(plan)
    found.append(_applied(names.scaler_service, service, StepReason.APPLY_GATEWAY_SCALER_SERVICE))
    return tuple(found)


def _applied(ref: ObjectRef, obj: Object, step: StepReason) -> Rendered:
    return Rendered(ref=ref, object=obj, mode=WriteMode.APPLY, step=step)


def _once(ref: ObjectRef, obj: Object, step: StepReason, *, controlled: bool = True) -> Rendered:
    return Rendered(ref=ref, object=obj, mode=WriteMode.CREATE_ONCE, step=step, controlled=controlled)
