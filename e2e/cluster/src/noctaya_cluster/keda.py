"""KEDA from the manifests of its own Go module, changed as little as a cluster without a registry needs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

import yaml
from noctaya_parts.versions import KEDA

from .conditions import is_true

Object = dict[str, Any]

NAMESPACE: Final = "keda"
VERSION: Final = KEDA
IMAGES: Final = {
    "keda-operator": f"ghcr.io/kedacore/keda:{VERSION}",
    "keda-adapter": f"ghcr.io/kedacore/keda-metrics-apiserver:{VERSION}",
    "keda-webhooks": f"ghcr.io/kedacore/keda-admission-webhooks:{VERSION}",
}
"""By the name of the part."""
PATHS: Final = {
    "keda-operator": "/keda",
    "keda-adapter": "/keda-adapter",
    "keda-webhooks": "/keda-admission-webhooks",
}
"""Where the manifests expect the programs."""
DEPLOYMENTS: Final = {
    "keda-operator": "keda-operator",
    "keda-metrics-apiserver": "keda-operator-metrics-apiserver",
    "keda-admission": "keda-admission-webhooks",
}
"""What must be available: names in the manifests and in the chart."""
NAME_LABEL: Final = "app.kubernetes.io/name"
METRICS_PATH: Final = "/apis/external.metrics.k8s.io/v1beta1"


def objects(manifests: str) -> list[Object]:
    """The objects of `kubectl kustomize config/default`, ready to be applied.

    Images are those of the release instead of `main` and are not pulled when they are there. Readiness is
    asked for from the first second on: waiting 20 s for something that takes two helps nobody here.
    """
    return [_prepared(each) for each in yaml.safe_load_all(manifests) if each]


def _prepared(original: Object) -> Object:
    if original["kind"] != "Deployment":
        return original
    deployment = copy.deepcopy(original)
    template = deployment["spec"]["template"]
    # The chart labels pods so, and network policies go by it; the manifests have `app` alone.
    template["metadata"]["labels"].setdefault(NAME_LABEL, DEPLOYMENTS[deployment["metadata"]["name"]])
    for container in template["spec"]["containers"]:
        container["image"] = _released(container["image"])
        container["imagePullPolicy"] = "IfNotPresent"
        container["readinessProbe"] |= {"initialDelaySeconds": 1, "periodSeconds": 1}
    return deployment


def _released(image: str) -> str:
    name = image.rpartition(":")[0]
    for released in IMAGES.values():
        if released.rpartition(":")[0] == name:
            return released
    return image


def unavailable(deployments: Iterable[Object]) -> list[str]:
    """Which of KEDA's Deployments are missing or not available."""
    available = {
        each["metadata"]["name"] for each in deployments if is_true(each.get("status", {}), "Available")
    }
    return [name for name, of_chart in DEPLOYMENTS.items() if not available & {name, of_chart}]
