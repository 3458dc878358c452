"""The gateway's Deployment and its disruption budget."""

from __future__ import annotations

import math
from typing import Final

from noctaya_api import names
from noctaya_api.duration import format_duration_ns
from noctaya_api.gateway_environment import optional_environment
from noctaya_api.quantity import canonical_quantity

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import mounts, security
from noctaya_operator.render.metadata import gateway_selector, manifest, public_labels
from noctaya_operator.render.pod import pull_secrets
from noctaya_operator.render.probes import health_path
from noctaya_operator.render.tracing import tracing_env

LAME_DUCK: Final = 5
"""Seconds a gateway goes on accepting after SIGTERM, its own default."""
EXIT_MARGIN: Final = 5
"""Seconds between the end of its drain budget and SIGKILL."""
MIN_GRACE: Final = 30
NEVER_WITHOUT: Final[Object] = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
}
"""A new Pod is ready before an old one goes, with one replica too."""


def render_gateway(plan: ServicePlan) -> Object:
    """The gateway's Deployment."""
    selector = gateway_selector(plan)
    pod: Object = {
        "automountServiceAccountToken": False,
        "securityContext": security.restricted_pod(),
        **pull_secrets(plan),
    }
    if plan.aggregated:
        pod["affinity"] = _spread(selector)
    pod["containers"] = [_container(plan)]
    pod["terminationGracePeriodSeconds"] = _grace_seconds(plan)
    pod["volumes"] = mounts.volumes(_mounted(plan))
    spec = {
        "replicas": plan.gateways,
        "selector": {"matchLabels": selector},
        "strategy": NEVER_WITHOUT,
        "template": {"metadata": {"labels": selector}, "spec": pod},
    }
    return manifest(plan.names.gateway, labels=selector, spec=spec)


def render_gateway_pdb(plan: ServicePlan) -> Object:
    """Keeps one of several gateways through voluntary disruptions."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": gateway_selector(plan)}}
    return manifest(plan.names.gateway_pdb, labels=public_labels(plan), spec=spec)


def _container(plan: ServicePlan) -> Object:
    ports = [{"name": names.HTTP_PORT_NAME, "containerPort": names.GATEWAY_PORT, "protocol": "TCP"}]
    if not plan.aggregated:
        ports.append(
            {"name": names.GRPC_PORT_NAME, "containerPort": names.SCALER_GRPC_PORT, "protocol": "TCP"}
        )
    container: Object = {
        "name": names.CONTAINER_GATEWAY,
        "image": plan.images.gateway,
        "env": _env(plan),
        "ports": ports,
    }
    if resources := _resources(plan):
        container["resources"] = resources
    # ScaledObjects wait for the first success, clients for the last: it is asked for often.
    container["readinessProbe"] = {
        "httpGet": {"path": names.PATH_READYZ, "port": names.GATEWAY_PORT},
        "periodSeconds": 2,
        "timeoutSeconds": 2,
    }
    container["livenessProbe"] = {
        "httpGet": {"path": names.PATH_HEALTHZ, "port": names.GATEWAY_PORT},
        "timeoutSeconds": 5,
    }
    container["securityContext"] = security.restricted_container()
    container["volumeMounts"] = mounts.mounts(_mounted(plan))
    return container


def _env(plan: ServicePlan) -> list[Object]:
    endpoint, scaling, ns = plan.service.spec.endpoint, plan.service.spec.scaling, plan.names
    cold_start = endpoint.cold_start
    engine_port = plan.runtime.spec.container.port.container_port
    values: dict[str, str] = {
        names.ENV_BACKEND_URL: f"http://{ns.host(ns.backend_service)}:{names.SERVICE_PORT}",
        names.ENV_LISTEN_ADDR: f":{names.GATEWAY_PORT}",
        names.ENV_MAX_QUEUE: str(endpoint.max_queue),
    }
    member: list[Object] = []
    if plan.aggregated:
        report = f"http://{ns.host(ns.scaler_service)}:{names.AGGREGATOR_PORT}{names.PATH_DEMAND}"
        values[names.ENV_DEMAND_AGGREGATOR_URL] = report
        uid = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
        member.append({"name": names.ENV_GATEWAY_ID, "valueFrom": uid})
    else:
        values[names.ENV_SCALER_LISTEN_ADDR] = f":{names.SCALER_GRPC_PORT}"
    behaviour: dict[str, str] = {
        names.ENV_ACTIVATION_TIMEOUT: format_duration_ns(scaling.activation_timeout.nanoseconds),
        names.ENV_COLDSTART_MODE: str(cold_start.mode),
        names.ENV_HEARTBEAT_INTERVAL: format_duration_ns(cold_start.heartbeat_interval.nanoseconds),
    }
    behaviour |= optional_environment(endpoint)
    behaviour |= {
        names.ENV_SERVICE_NAME: ns.service,
        names.ENV_BACKEND_ENDPOINTS: f"dns://{ns.host(ns.backend_pods)}:{engine_port}",
        names.ENV_HEALTH_PATH: health_path(plan.runtime),
        names.ENV_DRAIN_TIMEOUT: format_duration_ns(scaling.drain_timeout.nanoseconds),
    }
    for mounted in _mounted(plan):
        behaviour |= mounted.env
    return [*_literals(values), *member, *_literals(behaviour | tracing_env(plan))]


def _literals(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _mounted(plan: ServicePlan) -> list[mounts.Mounted]:
    found = [mounts.notices()]
    authentication = plan.service.spec.endpoint.authentication
    if authentication is not None:
        found.append(mounts.client_keys(authentication.secret_ref))
    if plan.aggregated:
        found.append(mounts.demand_token(plan.names.demand_secret.key.name))
    elif plan.scaling.tls is not None:
        found.append(mounts.scaler_tls(plan.scaling.tls.server_secret_name))
    if plan.traces_headers_secret:
        found.append(mounts.trace_headers(plan.traces_headers_secret))
    return found


def _resources(plan: ServicePlan) -> Object:
    wanted = plan.service.spec.endpoint.resources
    if wanted is None:
        return {}
    kinds = {"requests": wanted.requests, "limits": wanted.limits}
    rendered = {
        kind: {name: canonical_quantity(amount) for name, amount in amounts.manifest().items()}
        for kind, amounts in kinds.items()
        if amounts is not None
    }
    return {kind: amounts for kind, amounts in rendered.items() if amounts}


def _grace_seconds(plan: ServicePlan) -> int:
    drain = math.ceil(plan.service.spec.scaling.drain_timeout.seconds)
    return max(MIN_GRACE, LAME_DUCK + drain + EXIT_MARGIN)


def _spread(selector: dict[str, str]) -> Object:
    term = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": selector},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
