"""The scaling intent of one service in the units KEDA takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from noctaya_api.conditions import StepReason
from noctaya_api.v1alpha1 import LLMService
from noctaya_api.v1alpha1.llmservice_scaling import ScalerTls, ScalingMetric

from noctaya_operator.plan_error import PlanError
from noctaya_operator.wish import NOTHING, Wish

_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class ScalingIntent:
    """Bounds, target and patience of the autoscaler."""

    minimum: int
    maximum: int
    target: int
    """Demand one replica should have."""
    cooldown_seconds: int
    """0 to 3600."""
    tls: ScalerTls | None
    """Mutual TLS between KEDA and the scaler; None is plaintext."""


def plan_scaling(service: LLMService, wish: Wish = NOTHING) -> ScalingIntent:
    """Translate the service's scaling and what is wanted beside it. Raises PlanError."""
    spec = service.spec.scaling
    if spec.metric is ScalingMetric.KV_CACHE_UTIL:
        raise PlanError(
            StepReason.SCALED_OBJECT,
            "scaling.metric kvCacheUtil is reserved for a later version; use queueDepth",
        )
    return ScalingIntent(
        minimum=wish.minimum(least=spec.min, most=spec.max),
        maximum=spec.max,
        target=spec.target,
        cooldown_seconds=spec.scale_down_stabilization.nanoseconds // _SECOND,
        tls=spec.external_scaler.tls if spec.external_scaler else None,
    )
