"""Values that can't work are refused before anything is installed, by name and with what to do."""

from __future__ import annotations

from typing import Any

import pytest
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm, HelmFault

BACKEND = {"name": "vllm", "selector": {"app": "vllm"}}
MODEL = {"source": {"uri": "hf://org/name"}, "claim": {"name": "models"}}
TAG = "oci://registry.example.com/models/qwen:latest"

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "operator",
        {"operator": {"leaderElect": False}},
        "operator.leaderElect must be true when operator.replicas",
    ),
    ("operator", {"operator": {"replicas": 0}}, "minimum: got 0, want 1"),
    ("operator", {"operator": {"replicas": 2**31}}, "maximum"),
    ("operator", {"gateway": {"replicas": 0}}, "minimum: got 0, want 1"),
    ("operator", {"gateway": {"replicas": 2**31}}, "maximum"),
    ("operator", {"gateway": {"scalerMode": "embedded"}}, "additional properties 'scalerMode' not allowed"),
    ("operator", {"replicas": 2}, "additional properties 'replicas' not allowed"),
    ("operator", {"serviceAccount": {"create": False}}, "serviceAccount.name is required"),
    (
        "operator",
        {"image": {"pullPolicy": "Sometimes"}},
        "value must be one of 'Always', 'IfNotPresent', 'Never'",
    ),
    ("operator", {"image": {"gateway": ""}}, "minLength"),
    ("operator", {"operator": {"resources": {"limits": {"cpu": 1}}}}, "got number, want string"),
    (
        "operator",
        {"operator": {"resources": {"limits": {"gpu": "1"}}}},
        "additional properties 'gpu' not allowed",
    ),
    (
        "operator",
        {"operator": {"extraArgs": ["--workers=9"]}},
        "must not hold --workers: the chart has a value",
    ),
    ("operator", {"operator": {"extraArgs": ["workers=9"]}}, "does not match pattern"),
    ("operator", {"namespaces": ["Not_A_Name"]}, "does not match pattern"),
    (
        "operator",
        {"metrics": {"enabled": False, "serviceMonitor": {"enabled": True}}},
        "metrics.serviceMonitor.enabled needs metrics.enabled=true",
    ),
    ("operator", {"tracing": {"samplingRatio": 2}}, "maximum: got 2, want 1"),
    ("operator", {"tracing": {"samplingRatio": "2"}}, "does not match pattern"),
    ("operator", {"tracing": {"endpoint": "http://user:password@collector"}}, "does not match pattern"),
    ("operator", {"tracing": {"endpoint": "collector:4318"}}, "does not match pattern"),
    ("operator", {"operator": {"extraArgs": ["--traces-headers-secret=x"]}}, "the chart has a value"),
    (
        "gateway",
        {"backend": BACKEND, "tracing": {"endpoint": "https://token@collector/v1"}},
        "does not match pattern",
    ),
    ("gateway", {}, "backend.selector or backend.url is required"),
    ("gateway", {"backend": {"selector": {"app": "x"}}}, "backend.name is required"),
    ("gateway", {"backend": {**BACKEND, "url": "http://x"}}, "exclude each other"),
    (
        "gateway",
        {"backend": {**BACKEND, "endpoints": "dns://x:1"}},
        "backend.endpoints belongs to backend.url",
    ),
    ("gateway", {"backend": {**BACKEND, "url": "vllm:8000"}}, "does not match pattern"),
    ("gateway", {"backend": {**BACKEND, "kind": "DaemonSet"}}, "value must be one of"),
    (
        "gateway",
        {"backend": BACKEND, "scaling": {"min": 2, "max": 1}},
        r"scaling.min \(2\) must not be above",
    ),
    ("gateway", {"backend": BACKEND, "scaling": {"scaleDownStabilization": "61m"}}, "at most 1h"),
    (
        "gateway",
        {"backend": BACKEND, "gateway": {"activationTimeout": "5 minutes"}},
        "does not match pattern",
    ),
    ("gateway", {"backend": BACKEND, "gateway": {"maxQueue": 0}}, "minimum: got 0, want 1"),
    ("gateway", {"backend": BACKEND, "tls": {"serverSecret": "x"}}, "tls.authenticationRef.name is required"),
    (
        "gateway",
        {"backend": BACKEND, "tls": {"authenticationRef": {"name": "x"}}},
        "tls.serverSecret is required",
    ),
    (
        "gateway",
        {"backend": BACKEND, "authentication": {"secretName": "x", "secretKey": ""}},
        "secretKey is required",
    ),
    (
        "gateway",
        {"backend": BACKEND, "aggregateScaler": {"url": "http://x:9091"}},
        "demandAuth.existingSecret is required with aggregateScaler.url",
    ),
    ("gateway", {"name": "n" * 56, "backend": BACKEND}, "does not match pattern"),
    ("aggregate-scaler", {}, "backend.name is required"),
    (
        "aggregate-scaler",
        {"backend": {"name": "x"}, "tls": {"serverSecret": "x"}},
        "authenticationRef.name is required",
    ),
    ("prewarm-agent", {}, "source.uri is required"),
    ("prewarm-agent", {"source": {"uri": "hf://org/name"}}, "claim.name is required"),
    ("prewarm-agent", {**MODEL, "source": {"uri": "pvc://models/x"}}, "does not match pattern"),
    ("prewarm-agent", {**MODEL, "source": {"uri": TAG}}, "must name an OCI artifact by its digest"),
    ("prewarm-agent", {**MODEL, "claim": {"name": "models", "path": "../x"}}, "does not match pattern"),
    ("prewarm-agent", {**MODEL, "source": {"uri": "hf://a/b", "region": "eu"}}, "source.region is for s3://"),
    ("prewarm-agent", {**MODEL, "job": {"deadline": "soon"}}, "does not match pattern"),
]


@pytest.mark.parametrize(
    ("chart", "values", "told"), REFUSED, ids=lambda given: given if isinstance(given, str) else ""
)
def test_bad_values_are_refused_with_their_name_and_the_remedy(
    helm: Helm, chart: str, values: dict[str, Any], told: str
) -> None:
    with pytest.raises(HelmFault, match=told):
        helm.template(CHARTS / chart, values)


def test_an_older_kubernetes_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmFault, match=r"kubeVersion: >=1.30.0-0 which is incompatible"):
        helm.template(CHARTS / "operator", flags=("--kube-version", "1.29.9"))
    assert helm.template(CHARTS / "operator", flags=("--kube-version", "1.30.0-eks-1"))
