"""The Pod of the backend: the serving container, its end, its volumes, where it runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from noctaya_api import names
from noctaya_api.quantity import canonical_quantity
from noctaya_api.v1alpha1.core import LocalObjectReference

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render import probes, security
from noctaya_operator.render.cache import cache_mount, cache_volume
from noctaya_operator.render.metadata import weight_users_selector
from noctaya_operator.render.waiting import wait_for_prewarm

DRAIN_MARGIN: Final = 10
"""Seconds between the end of draining and SIGKILL."""
MODEL_STORE: Final = "model-store"
MODEL_SECRET: Final = "model-secret"  # noqa: S105  the name of a volume
SHARED_MEMORY: Final = "dshm"


def render_backend_pod(plan: ServicePlan) -> Object:
    """Spec of the backend's Pods."""
    context = security.engine_pod(plan.runtime.spec.pod_security)
    pod: Object = {"automountServiceAccountToken": False, "securityContext": context}
    pod |= placement(plan)
    if plan.kept_on_one_node:
        pod["affinity"] = beside_the_weights(plan)
    if plan.node:
        pod["affinity"] = on_node(plan.node)
    if plan.prewarm is not None and plan.prewarm.waited_for:
        pod["initContainers"] = [wait_for_prewarm(plan, plan.prewarm)]
    pod["containers"] = [_serving(plan)]
    if (grace := _grace_seconds(plan)) is not None:
        pod["terminationGracePeriodSeconds"] = grace
    pod["volumes"] = _volumes(plan)
    return pod


def placement(plan: ServicePlan) -> Object:
    """Where Pods of the runtime run, and with which pull Secrets; the backend's and prewarming's alike."""
    accelerator, pod = plan.accelerator, Object()
    if accelerator.node_selector:
        pod["nodeSelector"] = dict(accelerator.node_selector)
    if accelerator.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in accelerator.tolerations]
    if accelerator.scheduler:
        pod["schedulerName"] = accelerator.scheduler
    return pod | pull_secrets(plan)


def pull_secrets(plan: ServicePlan) -> Object:
    """The image pull Secrets, each once: the list is keyed by name."""
    found = _names_of(plan.service.spec.image_pull_secrets)
    return {"imagePullSecrets": [{"name": name} for name in found]} if found else {}


def queue_annotations(plan: ServicePlan) -> dict[str, str]:
    """Annotations of Pods that a queue admits."""
    queue = plan.accelerator.queue
    return {names.ANNOTATION_VOLCANO_QUEUE: queue} if queue else {}


def beside_the_weights(plan: ServicePlan) -> Object:
    """Affinity to the node that already mounts the claim. The first Pod, which finds no other, may go
    anywhere: a Pod that matches its own term is let through."""
    term = {
        "labelSelector": {"matchLabels": weight_users_selector(plan)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def on_node(name: str) -> Object:
    """Affinity to one node, by its name and not by a label that may differ from it."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _serving(plan: ServicePlan) -> Object:
    runtime, serving = plan.runtime, plan.serving
    port = runtime.spec.container.port
    container: Object = {"name": names.CONTAINER_SERVING, "image": runtime.spec.container.image}
    if serving.command:
        container["command"] = list(serving.command)
    if serving.args:
        container["args"] = list(serving.args)
    if serving.env:
        container["env"] = [dict(entry) for entry in serving.env]
    container["ports"] = [{"name": port.name, "containerPort": port.container_port, "protocol": "TCP"}]
    if resources := _resources(plan):
        container["resources"] = resources
    container["readinessProbe"] = probes.readiness_probe(runtime)
    container["startupProbe"] = probes.startup_probe(runtime)
    if (liveness := probes.liveness_probe(runtime)) is not None:
        container["livenessProbe"] = liveness
    if drain := _drain_seconds(plan):
        container["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sh", "-c", f"sleep {drain}"]}}}
    container["securityContext"] = security.engine_container(runtime.spec.pod_security)
    container["volumeMounts"] = _mounts(plan)
    return container


def _resources(plan: ServicePlan) -> Object:
    wanted = plan.service.spec.resources
    requests, limits = Object(), Object()
    if wanted.cpu is not None:
        requests["cpu"] = canonical_quantity(wanted.cpu)
    if wanted.memory is not None:
        requests["memory"] = limits["memory"] = canonical_quantity(wanted.memory)
    if plan.accelerator.resource_name:
        limits[plan.accelerator.resource_name] = str(plan.accelerator.count)
    return {name: amounts for name, amounts in (("requests", requests), ("limits", limits)) if amounts}


def _drain_seconds(plan: ServicePlan) -> int:
    """Whole seconds a replica lives on before SIGTERM, 0 for none."""
    lifecycle = plan.runtime.spec.lifecycle
    if lifecycle is None or not lifecycle.pre_stop_drain:
        return 0
    return math.ceil(plan.service.spec.scaling.drain_timeout.seconds)


def _grace_seconds(plan: ServicePlan) -> int | None:
    """Seconds between deletion and SIGKILL, None for Kubernetes' default."""
    lifecycle, drain = plan.runtime.spec.lifecycle, _drain_seconds(plan)
    base = lifecycle.termination_grace_period_seconds if lifecycle else None
    return max(base or 0, drain + DRAIN_MARGIN) if drain else base


def _mounts(plan: ServicePlan) -> list[Object]:
    mounts: list[Object] = [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}]  # noqa: S108  not a temporary file
    if plan.source.claim:
        mounts.append({"name": MODEL_STORE, "mountPath": names.MODELS_MOUNT, "readOnly": True})
    mounts += [
        {"name": mount.name, "mountPath": mount.path, "readOnly": True}
        for mount in plan.accelerator.host_mounts
    ]
    if plan.serving.token_secret:
        mounts.append({"name": MODEL_SECRET, "mountPath": names.MODEL_SECRET_DIR, "readOnly": True})
    if plan.cache is not None:
        mounts.append(cache_mount(read_only=plan.cache.read_only))
    return mounts


def _volumes(plan: ServicePlan) -> list[Object]:
    volumes: list[Object] = [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}]
    if plan.source.claim:
        claim = {"claimName": plan.source.claim, "readOnly": True}
        volumes.append({"name": MODEL_STORE, "persistentVolumeClaim": claim})
    volumes += [
        {"name": mount.name, "hostPath": {"path": mount.path}} for mount in plan.accelerator.host_mounts
    ]
    if plan.serving.token_secret:
        secret = {"secretName": plan.serving.token_secret, "defaultMode": security.GUEST_SECRET_MODE}
        volumes.append({"name": MODEL_SECRET, "secret": secret})
    if plan.cache is not None:
        volumes.append(cache_volume(plan.cache))
    return volumes


def _names_of(references: Iterable[LocalObjectReference]) -> list[str]:
    return list(dict.fromkeys(reference.name for reference in references if reference.name))
