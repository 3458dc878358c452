"""KEDA's manifests, made fit for a cluster without a registry."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import yaml
from noctaya_cluster import keda

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: keda}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: keda-operator, namespace: keda}
spec:
  template:
    metadata: {labels: {app: keda-operator}}
    spec:
      containers:
      - name: keda-operator
        image: ghcr.io/kedacore/keda:main
        imagePullPolicy: Always
        readinessProbe: {httpGet: {path: /readyz, port: 8081}, initialDelaySeconds: 20}
      - name: other
        image: example.com/sidecar:7
        imagePullPolicy: Always
        readinessProbe: {httpGet: {path: /, port: 1}, initialDelaySeconds: 20}
---
"""


def deployment(name: str, *, available: bool) -> dict[str, object]:
    condition = {"type": "Available", "status": str(available)}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def test_images_are_those_of_the_release_and_are_not_pulled_when_they_are_there() -> None:
    _, operator = keda.objects(MANIFESTS)

    first, second = operator["spec"]["template"]["spec"]["containers"]
    assert first["image"] == f"ghcr.io/kedacore/keda:{keda.VERSION}"
    assert first["imagePullPolicy"] == "IfNotPresent"
    assert second["image"] == "example.com/sidecar:7"


def test_readiness_is_asked_for_from_the_first_second_on() -> None:
    _, operator = keda.objects(MANIFESTS)

    probe = operator["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe == {
        "httpGet": {"path": "/readyz", "port": 8081},
        "initialDelaySeconds": 1,
        "periodSeconds": 1,
    }


def test_everything_else_stays_as_it_is() -> None:
    namespace, _ = keda.objects(MANIFESTS)

    assert namespace == next(iter(yaml.safe_load_all(MANIFESTS)))


def test_what_is_missing_or_unavailable_is_named() -> None:
    found = [
        deployment("keda-operator", available=True),
        deployment("keda-metrics-apiserver", available=False),
    ]

    assert keda.unavailable(found) == ["keda-metrics-apiserver", "keda-admission"]


@pytest.mark.parametrize(
    "names", [keda.DEPLOYMENTS.keys(), keda.DEPLOYMENTS.values()], ids=["manifests", "chart"]
)
def test_keda_is_found_however_it_was_installed(names: Iterable[str]) -> None:
    assert keda.unavailable([deployment(name, available=True) for name in names]) == []


def test_pods_have_the_labels_of_the_chart_too() -> None:
    _, operator = keda.objects(MANIFESTS)

    labels = operator["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "keda-operator", "app.kubernetes.io/name": "keda-operator"}
