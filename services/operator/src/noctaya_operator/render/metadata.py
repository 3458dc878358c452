"""Labels, selectors and the frame of every object.

Selectors can't be changed after creation: they are those of the v0.4 alpha, letter by letter, so that its
objects can be taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noctaya_api import names

from noctaya_operator.kube.objects import Object
from noctaya_operator.object_names import ObjectRef
from noctaya_operator.plan import ServicePlan

Labels = dict[str, str]


def backend_selector(plan: ServicePlan) -> Labels:
    """Labels that find the backend's Pods, whatever their runtime. Claim, Job and Secret carry them too."""
    return {**_base(plan.names.service), names.LABEL_LLMSERVICE: plan.names.service}


def backend_labels(plan: ServicePlan) -> Labels:
    """Labels of the backend Deployment and its Pods."""
    return {**backend_selector(plan), names.LABEL_RUNTIME: plan.runtime.name}


def prewarm_pod_labels(plan: ServicePlan) -> Labels:
    """Labels of prewarm Pods, by which no Service takes them for a backend."""
    return {
        **_base(plan.names.prewarm_job.key.name),
        names.LABEL_LLMSERVICE: plan.names.service,
    }


def weight_users_selector(plan: ServicePlan) -> Labels:
    """Labels that find all Pods that mount the cache."""
    return {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_LLMSERVICE: plan.names.service}


def gateway_selector(plan: ServicePlan) -> Labels:
    """Labels of the gateway Deployment and its Pods."""
    return {**_base(plan.names.gateway.key.name), names.LABEL_GATEWAY: plan.names.service}


def scaler_selector(plan: ServicePlan) -> Labels:
    """Labels of the aggregate scaler's Deployment and its Pods."""
    return {**_base(plan.names.scaler.key.name), names.LABEL_SCALER: plan.names.service}


def public_labels(plan: ServicePlan) -> Labels:
    """Labels of what clients and KEDA talk to: the public and the scaler Service, and the gateway's PDB."""
    return {**gateway_selector(plan), names.LABEL_LLMSERVICE: plan.names.service}


def manifest(
    ref: ObjectRef,
    *,
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """One complete object with a spec. Its parts are copied, so that nothing is shared."""
    return {**frame(ref, labels=labels, annotations=annotations), "spec": _copied(spec)}


def frame(
    ref: ObjectRef, *, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Object:
    """Kind and metadata of one object."""
    metadata: Object = {
        "name": ref.key.name,
        "namespace": ref.key.namespace,
        "labels": dict(labels),
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": ref.resource.api_version, "kind": ref.resource.kind, "metadata": metadata}


def _base(name: str) -> Labels:
    return {names.LABEL_NAME: name, names.LABEL_MANAGED_BY: names.MANAGED_BY}


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list | tuple) else value
