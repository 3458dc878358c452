"""The same component twice: as the operator renders it for an LLMService, and as values for a chart.

Where the two are meant to differ stands here as data; everything else has to be equal, object by object.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from noctaya_api.duration import format_duration_ns
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_operator.defaults import Defaults, Images
from noctaya_operator.plan import ServicePlan, plan_service
from noctaya_operator.render import Rendered, render_all

from noctaya_charts.helm import Object

NAMESPACE: Final = "models"
SERVICE: Final = "qwen"
TOKEN: Final = "A" * 43
IMAGES: Final = Images(
    gateway="ghcr.io/noctaya/noctaya-gateway:0.5.0",
    aggregate_scaler="ghcr.io/noctaya/noctaya-aggregate-scaler:0.5.0",
    prewarm="ghcr.io/noctaya/noctaya-prewarm-agent:0.5.0",
    oras="ghcr.io/oras-project/oras:v1.3.0",
)
RUNTIME: Final[Object] = {
    "metadata": {"name": "engine"},
    "spec": {
        "family": "custom",
        "vendor": "cpu",
        "container": {"image": "example.com/engine:1", "port": {"name": "web", "containerPort": 9000}},
        "health": {"readiness": {"httpGet": {"path": "/ready", "port": "web"}}},
    },
}
ABSENT: Final = "nothing"
HELM_LABELS: Final = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
"""Labels of objects, never of Pods or selectors, that a chart adds. It is `managed-by: Helm`, too."""


def plan(spec: Mapping[str, Any], *, gateways: int = 1, **given: Any) -> ServicePlan:
    """What the operator decides about a service with this spec; keyword arguments are defaults of its own."""
    service = LLMService.model_validate(
        {
            "metadata": {"name": SERVICE, "namespace": NAMESPACE, "uid": "1", "generation": 1},
            "spec": {
                "model": {"source": {"uri": "pvc://models/qwen"}},
                "runtime": {"name": "engine"},
                "resources": {"accelerators": 0},
                "cache": {"strategy": "None"},
                **spec,
            },
        }
    )
    return plan_service(
        service,
        runtimes=[InferenceRuntime.model_validate(RUNTIME)],
        defaults=Defaults(images=IMAGES, gateway_replicas=gateways, **given),
    )


def by_operator(planned: ServicePlan) -> dict[tuple[str, str], Object]:
    """What the operator renders, by kind and name."""
    rendered: Iterable[Rendered] = render_all(planned, demand_token=TOKEN)
    return {(each.ref.resource.kind, each.ref.key.name): each.object for each in rendered}


def as_of_helm(given: Object) -> Object:
    """An object of the operator with what a chart means to say otherwise: `managed-by` of the object itself.
    Helm writes that label whatever the chart says, and adds its own."""
    changed = copy.deepcopy(given)
    changed["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
    return changed


def without_helm(given: Object) -> Object:
    """An object of a chart without what only a chart has."""
    changed = copy.deepcopy(given)
    changed["metadata"]["labels"] = {
        name: value for name, value in changed["metadata"]["labels"].items() if name not in HELM_LABELS
    }
    return changed


def gateway_values(planned: ServicePlan) -> Object:
    """Values of the chart `noctaya-gateway` that ask for what the plan asks for."""
    spec, port = planned.service.spec, planned.runtime.spec.container.port
    scaling, endpoint = spec.scaling, spec.endpoint
    values: Object = {
        "backend": {
            "name": SERVICE,
            "selector": {
                "app.kubernetes.io/name": SERVICE,
                "app.kubernetes.io/managed-by": "noctaya",
                "serving.noctaya.io/llmservice": SERVICE,
            },
            "targetPort": port.name,
            "port": port.container_port,
            "healthPath": "/ready",
        },
        "gateway": {
            "replicas": planned.gateways,
            "maxQueue": endpoint.max_queue,
            "activationTimeout": format_duration_ns(scaling.activation_timeout.nanoseconds),
            "coldStartMode": str(endpoint.cold_start.mode),
            "heartbeats": endpoint.cold_start.heartbeats,
            "progress": endpoint.cold_start.progress,
            "accessLog": str(endpoint.access_log),
            "heartbeatInterval": format_duration_ns(endpoint.cold_start.heartbeat_interval.nanoseconds),
            "drainTimeout": format_duration_ns(scaling.drain_timeout.nanoseconds),
            "resources": endpoint.resources.manifest() if endpoint.resources else {},
        },
        "scaling": scaling_values(planned),
        "imagePullSecrets": [secret.name for secret in spec.image_pull_secrets],
    }
    if endpoint.authentication is not None:
        ref = endpoint.authentication.secret_ref
        values["authentication"] = {"secretName": ref.name, "secretKey": ref.key}
        if (limits := endpoint.authentication.limits) is not None:
            values["authentication"]["limits"] = limits.manifest()
    return values | tls_values(planned)


def scaler_values(planned: ServicePlan) -> Object:
    """The same for the chart `noctaya-aggregate-scaler`."""
    return {
        "backend": {"name": SERVICE},
        "gateways": {"count": planned.gateways, "maxQueue": planned.service.spec.endpoint.max_queue},
        "scaling": scaling_values(planned),
        "imagePullSecrets": [secret.name for secret in planned.service.spec.image_pull_secrets],
        **tls_values(planned),
    }


def scaling_values(planned: ServicePlan) -> Object:
    """Values below `scaling`, which both charts have."""
    intent = planned.scaling
    return {
        "min": intent.minimum,
        "max": intent.maximum,
        "target": intent.target,
        "scaleDownStabilization": f"{intent.cooldown_seconds}s",
    }


def tls_values(planned: ServicePlan) -> Object:
    """Values below `tls`, if the service has it."""
    tls = planned.scaling.tls
    if tls is None:
        return {}
    ref = tls.authentication_ref
    return {
        "tls": {
            "serverSecret": tls.server_secret_name,
            "authenticationRef": {"name": ref.name, "kind": str(ref.kind)},
        }
    }


def prewarm_values(planned: ServicePlan) -> Object:
    """Values of the chart `noctaya-prewarm-agent` for the plan's prewarming."""
    source, prewarm, cache = planned.service.spec.model.source, planned.prewarm, planned.cache
    if source is None or prewarm is None or cache is None:
        raise ValueError("this plan brings no weights")
    values: Object = {
        "source": {"uri": source.uri, "files": {"include": list(prewarm.files.include)}},
        "claim": {"name": f"{SERVICE}-cache", "path": prewarm.target.removeprefix("/cache/")},
        "job": {"stagingSize": cache.size},
        "imagePullSecrets": [secret.name for secret in planned.service.spec.image_pull_secrets],
    }
    values["source"]["files"]["exclude"] = list(prewarm.files.exclude)
    if source.secret_ref is not None:
        values["source"]["secretName"] = source.secret_ref.name
    for name in ("endpoint", "region"):
        if given := getattr(source, name):
            values["source"][name] = given
    if (timeout := planned.service.spec.cache.prewarm_timeout) is not None:
        values["job"]["deadline"] = format_duration_ns(timeout.nanoseconds)
    return values


def differences(chart: Any, operator: Any, *, path: str = "") -> list[str]:
    """Where two renderings are not the same, one line each; empty when they are."""
    if isinstance(chart, dict) and isinstance(operator, dict):
        return [
            line
            for key in sorted(chart.keys() | operator.keys(), key=str)
            for line in differences(
                chart.get(key, ABSENT), operator.get(key, ABSENT), path=f"{path}.{key}" if path else str(key)
            )
        ]
    if isinstance(chart, list) and isinstance(operator, list) and len(chart) == len(operator):
        pairs = enumerate(zip(chart, operator, strict=True))
        return [line for at, (one, two) in pairs for line in differences(one, two, path=f"{path}[{at}]")]
    return [] if chart == operator else [f"{path}: {chart!r} by the chart, {operator!r} by the operator"]
