"""The ScaledObject: what KEDA is asked to do."""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render.metadata import backend_selector, manifest

POLLING_SECONDS: Final = 5


def render_scaled_object(plan: ServicePlan, *, hold_at_zero: bool) -> Object:
    """The ScaledObject. `hold_at_zero` keeps the backend at no replicas whatever the demand, as does a
    service that is to sleep."""
    scaling = plan.scaling
    address = f"{plan.names.host(plan.names.scaler_service)}:{names.SCALER_GRPC_PORT}"
    trigger: Object = {
        "type": "external-push",
        "metadata": {
            "scalerAddress": address,
            names.SCALER_METADATA_METRIC_NAME: names.SCALER_METRIC,
            names.SCALER_METADATA_TARGET_VALUE: str(scaling.target),
        },
    }
    if scaling.tls is not None:
        reference = scaling.tls.authentication_ref
        trigger["authenticationRef"] = {"name": reference.name, "kind": str(reference.kind)}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": scaling.cooldown_seconds}}
    spec = {
        "scaleTargetRef": {"name": plan.names.backend.key.name},
        "minReplicaCount": scaling.minimum,
        "maxReplicaCount": scaling.maximum,
        "pollingInterval": POLLING_SECONDS,
        "cooldownPeriod": scaling.cooldown_seconds,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}},
        "triggers": [trigger],
    }
    annotations = {names.ANNOTATION_KEDA_PAUSED_REPLICAS: "0"} if hold_at_zero or plan.wish.asleep else None
    return manifest(
        plan.names.scaled_object, labels=backend_selector(plan), annotations=annotations, spec=spec
    )
