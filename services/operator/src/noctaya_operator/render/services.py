"""The four Services: the backend, its single Pods, the public one, the one KEDA dials.

The first, third and fourth have a port named `http` or are found by the discovery label as dashboards expect.
The headless one is for the gateway only: its port has another name, lest monitoring scrape every Pod twice.
"""

from __future__ import annotations

from typing import Final

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render.metadata import (
    backend_selector,
    gateway_selector,
    manifest,
    public_labels,
    scaler_selector,
)

BACKEND_PODS_PORT: Final = "backend"


def render_backend_service(plan: ServicePlan) -> Object:
    """One address in front of all ready backends."""
    target = plan.runtime.spec.container.port.name
    spec = {
        "selector": backend_selector(plan),
        "ports": [_port(names.HTTP_PORT_NAME, names.SERVICE_PORT, target)],
    }
    return manifest(plan.names.backend_service, labels=backend_selector(plan), spec=spec)


def render_backend_pods_service(plan: ServicePlan) -> Object:
    """The address of each ready backend. One that drains is no longer among them."""
    port = plan.runtime.spec.container.port
    spec = {
        "clusterIP": "None",
        "selector": backend_selector(plan),
        "ports": [_port(BACKEND_PODS_PORT, port.container_port, port.name)],
    }
    return manifest(plan.names.backend_pods, labels=backend_selector(plan), spec=spec)


def render_public_service(plan: ServicePlan) -> Object:
    """What clients use."""
    spec = {
        "selector": gateway_selector(plan),
        "ports": [_port(names.HTTP_PORT_NAME, names.SERVICE_PORT, names.GATEWAY_PORT)],
    }
    return manifest(plan.names.public_service, labels=public_labels(plan), spec=spec)


def render_scaler_service(plan: ServicePlan) -> Object:
    """What KEDA dials: the gateway itself, or the aggregate scaler, to which gateways then report."""
    ports = [_port(names.GRPC_PORT_NAME, names.SCALER_GRPC_PORT, names.SCALER_GRPC_PORT)]
    if plan.aggregated:
        ports.append(_port(names.HTTP_PORT_NAME, names.AGGREGATOR_PORT, names.AGGREGATOR_PORT))
    spec = {
        "type": "ClusterIP",
        "selector": scaler_selector(plan) if plan.aggregated else gateway_selector(plan),
        "ports": ports,
    }
    return manifest(plan.names.scaler_service, labels=public_labels(plan), spec=spec)


def _port(name: str, port: int, target: int | str) -> Object:
    return {"name": name, "port": port, "targetPort": target, "protocol": "TCP"}
