"""The aggregate scaler's Deployment: one Pod that sums the demand of several gateways for KEDA."""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import mounts, security
from noctaya_operator.render.gateway import NEVER_WITHOUT
from noctaya_operator.render.metadata import manifest, scaler_selector
from noctaya_operator.render.pod import pull_secrets
from noctaya_operator.render.tracing import tracing_env

GRACE_SECONDS: Final = 30
MIN_MEMBERS: Final = 16
MEMBERS_PER_GATEWAY: Final = 4
"""Rollouts and restarts leave former members behind until they expire."""


def render_scaler(plan: ServicePlan) -> Object:
    """The aggregate scaler's Deployment."""
    selector = scaler_selector(plan)
    pod: Object = {
        "automountServiceAccountToken": False,
        "securityContext": security.restricted_pod(),
        **pull_secrets(plan),
        "containers": [_container(plan)],
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": mounts.volumes(_mounted(plan)),
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": selector},
        "strategy": NEVER_WITHOUT,
        "template": {"metadata": {"labels": selector}, "spec": pod},
    }
    return manifest(plan.names.scaler, labels=selector, spec=spec)


def _container(plan: ServicePlan) -> Object:
    env: dict[str, str] = {
        names.ENV_AGGREGATOR_LISTEN_ADDR: f":{names.AGGREGATOR_PORT}",
        names.ENV_SCALER_LISTEN_ADDR: f":{names.SCALER_GRPC_PORT}",
        names.ENV_MAX_GATEWAY_MEMBERS: str(max(MIN_MEMBERS, MEMBERS_PER_GATEWAY * plan.gateways)),
        names.ENV_MAX_GATEWAY_DEMAND: str(plan.service.spec.endpoint.max_queue),
        names.ENV_EXPECTED_GATEWAY_MEMBERS: str(plan.gateways),
    }
    for mounted in _mounted(plan):
        env |= mounted.env
    env |= tracing_env(plan)
    return {
        "name": names.CONTAINER_SCALER,
        "image": plan.images.aggregate_scaler,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "ports": [
            {"name": names.GRPC_PORT_NAME, "containerPort": names.SCALER_GRPC_PORT, "protocol": "TCP"},
            {"name": names.HTTP_PORT_NAME, "containerPort": names.AGGREGATOR_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {
            "httpGet": {"path": names.PATH_READYZ, "port": names.AGGREGATOR_PORT},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
        },
        "livenessProbe": {
            "httpGet": {"path": names.PATH_HEALTHZ, "port": names.AGGREGATOR_PORT},
            "timeoutSeconds": 5,
        },
        "securityContext": security.restricted_container(),
        "volumeMounts": mounts.mounts(_mounted(plan)),
    }


def _mounted(plan: ServicePlan) -> list[mounts.Mounted]:
    found = [mounts.demand_token(plan.names.demand_secret.key.name)]
    if plan.scaling.tls is not None:
        found.append(mounts.scaler_tls(plan.scaling.tls.server_secret_name))
    if plan.traces_headers_secret:
        found.append(mounts.trace_headers(plan.traces_headers_secret))
    return found
