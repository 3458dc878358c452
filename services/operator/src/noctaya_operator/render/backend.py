"""The Deployment of the engine.

It never says `spec.replicas`: KEDA owns them. A rollout fits the hardware: without a spare accelerator, or
with a cache that only one node can mount, the old Pod goes before the new one comes.
"""

from __future__ import annotations

from noctaya_operator.kube.objects import Object
from noctaya_operator.plan import ServicePlan
from noctaya_operator.render.metadata import backend_labels, backend_selector, manifest
from noctaya_operator.render.pod import queue_annotations, render_backend_pod
from noctaya_operator.render.probes import progress_deadline


def render_backend(plan: ServicePlan) -> Object:
    """The backend's Deployment, without replicas."""
    template: Object = {"metadata": {"labels": backend_labels(plan)}, "spec": render_backend_pod(plan)}
    if annotations := queue_annotations(plan):
        template["metadata"]["annotations"] = annotations
    spec = {
        "selector": {"matchLabels": backend_selector(plan)},
        "strategy": _strategy(plan),
        "progressDeadlineSeconds": progress_deadline(plan.runtime),
        "template": template,
    }
    return manifest(plan.names.backend, labels=backend_labels(plan), spec=spec)


def _strategy(plan: ServicePlan) -> Object:
    alone = plan.accelerator.scarce or (plan.cache is not None and plan.cache.one_node)
    rolling = {"maxSurge": 0, "maxUnavailable": 1} if alone else {"maxSurge": "25%", "maxUnavailable": "25%"}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}
