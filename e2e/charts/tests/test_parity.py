"""A chart renders what the operator renders for the same component, object by object.

`noctaya_charts.parity` says where they are meant to differ; here are the names that do.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import pytest
from noctaya_charts import parity
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm, Object
from noctaya_charts.parity import NAMESPACE, SERVICE

Spec = dict[str, Any]
Objects = dict[tuple[str, str], Object]

OF_THE_OPERATOR_ALONE: Final = {("Deployment", SERVICE)}
"""The backend: with a chart it is somebody else's."""

TLS: Final[Spec] = {
    "scaling": {
        "externalScaler": {
            "tls": {"serverSecretName": "server", "authenticationRef": {"name": "keda"}},
        }
    }
}
SPECS: Final[dict[str, Spec]] = {
    "defaults": {},
    "everything": {
        "scaling": {
            "min": 1,
            "max": 4,
            "target": 3,
            "activationTimeout": "90s",
            "scaleDownStabilization": "45s",
            "drainTimeout": "1500ms",
        },
        "endpoint": {
            "maxQueue": 7,
            "coldStart": {
                "mode": "reject",
                "heartbeats": False,
                "heartbeatInterval": "2500ms",
                "progress": True,
            },
            "authentication": {
                "secretRef": {"name": "keys", "key": "all"},
                "limits": {"requestsPerMinute": 600, "concurrentRequests": 8},
            },
            "accessLog": "errors",
            "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "256Mi"}},
        },
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
    },
    "a long drain": {"scaling": {"drainTimeout": "10m"}},
    "no drain": {"scaling": {"drainTimeout": "0s"}},
    "mutual TLS": TLS,
}


def by_chart(helm: Helm, chart: str, values: Object) -> Objects:
    objects = helm.template(CHARTS / chart, values, release=SERVICE, namespace=NAMESPACE)
    return {(each["kind"], each["metadata"]["name"]): parity.without_helm(each) for each in objects}


def expected(planned: Any, *, without: set[tuple[str, str]] = OF_THE_OPERATOR_ALONE) -> Objects:
    found = parity.by_operator(planned)
    return {key: parity.as_of_helm(each) for key, each in found.items() if key not in without}


def with_the_same_token(objects: Objects) -> Objects:
    """Every rendering has another token; what it must be like is checked here."""
    changed = dict(objects)
    for key, each in objects.items():
        if each["kind"] == "Secret":
            token = base64.b64decode(each["data"]["token"], validate=True)
            assert len(token) == 43
            changed[key] = {**each, "data": {"token": "..."}}
    return changed


@pytest.mark.parametrize("gateways", [1, 2, 5])
@pytest.mark.parametrize("name", SPECS)
def test_the_gateway_chart_renders_what_the_operator_does(helm: Helm, name: str, gateways: int) -> None:
    planned = parity.plan(SPECS[name], gateways=gateways)
    found = by_chart(helm, "gateway", parity.gateway_values(planned))
    assert parity.differences(with_the_same_token(found), with_the_same_token(expected(planned))) == []


@pytest.mark.parametrize("name", SPECS)
def test_the_aggregate_scaler_chart_renders_what_the_operator_does(helm: Helm, name: str) -> None:
    planned = parity.plan(SPECS[name], gateways=3)
    found = by_chart(helm, "aggregate-scaler", parity.scaler_values(planned))
    mine = {
        ("Deployment", f"{SERVICE}-scaler"),
        ("Service", f"{SERVICE}-scaler"),
        ("Secret", f"{SERVICE}-demand-auth"),
        ("ScaledObject", SERVICE),
    }
    wanted = {key: each for key, each in expected(planned).items() if key in mine}
    assert parity.differences(with_the_same_token(found), with_the_same_token(wanted)) == []


TRACED: Final[Spec] = {
    "tracing": (
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
    ),
    "traces_headers_secret": "collector",
}
TRACING: Final[Spec] = {
    "tracing": {
        "endpoint": "http://collector:4318",
        "headersSecret": "collector",
        "resourceAttributes": {
            "deployment.environment": "test",
            "k8s.namespace.name": NAMESPACE,
            "noctaya.llmservice": SERVICE,
        },
    }
}


@pytest.mark.parametrize("gateways", [1, 2])
@pytest.mark.parametrize("spec", [{}, TLS], ids=["plain", "mutual TLS"])
def test_traces_and_the_headers_for_their_collector_are_as_the_operator_has_them(
    helm: Helm, spec: Spec, gateways: int
) -> None:
    planned = parity.plan(spec, gateways=gateways, **TRACED)
    found = by_chart(helm, "gateway", parity.gateway_values(planned) | TRACING)
    assert parity.differences(with_the_same_token(found), with_the_same_token(expected(planned))) == []


DIGEST: Final = "5" * 64
SHARED: Final[Spec] = {"strategy": "SharedPVC", "size": "20Gi", "prewarm": True}
WEIGHTS: Final[dict[str, Spec]] = {
    "hub": {"model": {"source": {"uri": "hf://org/name@main"}}, "cache": SHARED},
    "another hub": {
        "model": {"source": {"uri": "modelscope://org/name", "endpoint": "https://mirror.example.com"}},
        "cache": SHARED,
    },
    "gated hub": {
        "model": {
            "source": {
                "uri": "hf://org/name",
                "secretRef": {"name": "hub"},
                "files": {"include": ["*.safetensors", "*.json"], "exclude": ["original/*"]},
            }
        },
        "cache": {**SHARED, "prewarmTimeout": "90m"},
        "imagePullSecrets": [{"name": "one"}],
    },
    "bucket": {
        "model": {
            "source": {
                "uri": "s3://models/qwen",
                "secretRef": {"name": "s3"},
                "region": "eu-central-1",
                "endpoint": "https://s3.example.com",
            }
        },
        "cache": SHARED,
    },
    "artifact": {"model": {"source": {"uri": f"oci://r.example.com/qwen@sha256:{DIGEST}"}}, "cache": SHARED},
    "private artifact": {
        "model": {
            "source": {
                "uri": f"oci://r.example.com:5000/models/qwen@sha256:{DIGEST}",
                "secretRef": {"name": "registry"},
                "endpoint": "http://r.example.com:5000",
            }
        },
        "cache": SHARED,
    },
}
UNREAD_BY_THE_AGENT: Final = {"VLLM_USE_MODELSCOPE"}
"""Environment of engines that the operator hands on."""


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_prewarm_chart_s_job_has_the_pod_of_the_operator_s(helm: Helm, name: str) -> None:
    planned = parity.plan(WEIGHTS[name])
    found = by_chart(helm, "prewarm-agent", parity.prewarm_values(planned))
    ((kind, job_name),) = found
    assert kind == "Job"
    assert job_name.startswith(f"{SERVICE}-prewarm-")
    job, wanted = found[kind, job_name], parity.by_operator(planned)["Job", f"{SERVICE}-prewarm"]
    assert job["spec"]["backoffLimit"] == wanted["spec"]["backoffLimit"]
    assert parity.differences(pod_of(job), pod_of(wanted)) == []


def pod_of(job: Object) -> Object:
    pod: Object = dict(job["spec"]["template"]["spec"])
    for container in pod["containers"]:
        env = [each for each in container.pop("env", []) if each["name"] not in UNREAD_BY_THE_AGENT]
        if env:
            container["env"] = env
    return pod


def test_pods_of_the_prewarm_chart_are_nobody_s_service(helm: Helm) -> None:
    planned = parity.plan(WEIGHTS["hub"])
    (job,) = by_chart(helm, "prewarm-agent", parity.prewarm_values(planned)).values()
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "app.kubernetes.io/name": f"{SERVICE}-prewarm",
        "app.kubernetes.io/managed-by": "noctaya",
    }


def test_other_values_make_another_job_and_the_same_values_the_same(helm: Helm) -> None:
    values = parity.prewarm_values(parity.plan(WEIGHTS["hub"]))
    same, again = (by_chart(helm, "prewarm-agent", values) for _ in range(2))
    assert same == again
    other = by_chart(helm, "prewarm-agent", values | {"commonLabels": {"stage": "test"}})
    assert other.keys() != same.keys()
