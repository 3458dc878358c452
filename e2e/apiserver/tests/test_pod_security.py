"""O10: every Pod that the operator renders, before the real admission of Pod Security.

Ours meet `restricted` but for the one that writes to a directory of the node; engines meet `baseline` but for
those that need the node (decision 0010), and `restricted` where their runtime says so (decision 0023).
"""

from __future__ import annotations

from typing import Any

import pytest
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_apiserver import ApiClient
from noctaya_apiserver.pod_security import PodSecurity, templates
from noctaya_operator.defaults import Defaults
from noctaya_operator.plan import plan_service
from noctaya_operator.precedent import NONE
from noctaya_operator.render import render_all

DIGEST = "0123456789abcdef" * 4
SOURCES: dict[str, dict[str, Any]] = {
    "hub": {"uri": "hf://org/model@v1", "secretRef": {"name": "hub"}},
    "scope": {"uri": "modelscope://org/model"},
    "bucket": {"uri": "s3://bucket/model", "endpoint": "http://minio:9000", "secretRef": {"name": "s3"}},
    "artifact": {"uri": f"oci://registry/model@sha256:{DIGEST}", "secretRef": {"name": "registry"}},
    "staged": {"uri": "pvc://models/tiny"},
}
CACHES: dict[str, dict[str, Any]] = {
    "claim": {"prewarm": True},
    "shared": {"strategy": "SharedPVC", "claimName": "models", "prewarm": True},
    "unwarmed": {"strategy": "SharedPVC"},
    "node": {"strategy": "HostPath", "prewarm": True},
}
EVERYTHING: dict[str, Any] = {
    "endpoint": {"authentication": {"secretRef": {"name": "keys", "key": "keys"}}},
    "scaling": {
        "externalScaler": {"tls": {"serverSecretName": "tls", "authenticationRef": {"name": "mtls"}}},
    },
    "imagePullSecrets": [{"name": "pull"}],
}
CASES = [
    (source, cache)
    for source in SOURCES
    for cache in CACHES
    if not (source == "staged" and cache != "unwarmed")
    and not (source in {"bucket", "artifact"} and cache == "unwarmed")
]


@pytest.fixture(scope="module")
def admission(api: ApiClient) -> PodSecurity:
    return PodSecurity(api, "rendered")


def engine(vendor: str, **more: Any) -> InferenceRuntime:
    resources = {"nvidia": "nvidia.com/gpu", "ascend": "huawei.com/Ascend910", "amd": "amd.com/gpu"}
    spec: dict[str, Any] = {
        "vendor": vendor,
        "container": {"image": "example.com/engine:1", "args": ["{{ .Model.Path }}"], "port": {}},
        **more,
    }
    if vendor in resources:
        spec["accelerator"] = {"resourceName": resources[vendor]}
    return InferenceRuntime.model_validate({"metadata": {"name": "engine"}, "spec": spec})


def levels(
    admission: PodSecurity,
    source: dict[str, Any],
    cache: dict[str, Any],
    *,
    on: InferenceRuntime,
    gateways: int,
) -> dict[str, str]:
    """Level by object of everything rendered for a service."""
    spec = {"model": {"source": source}, "runtime": {"name": "engine"}, "cache": cache, **EVERYTHING}
    metadata = {"name": "chat", "namespace": "team", "uid": "uid-of-chat", "generation": 1}
    plan = plan_service(
        LLMService.model_validate({"metadata": metadata, "spec": spec}),
        runtimes=[on],
        defaults=Defaults(gateway_replicas=gateways),
        precedent=NONE,
    )
    found = [each.object for each in render_all(plan, demand_token="t" * 43, hold_at_zero=False)]
    return {name: admission.level(template) for name, template in templates(found)}


@pytest.mark.parametrize(("source", "cache"), CASES, ids=str)
@pytest.mark.parametrize("gateways", [1, 2])
def test_o10_pods_of_ours_are_let_in_where_pods_are_restricted(
    admission: PodSecurity, source: str, cache: str, gateways: int
) -> None:
    found = levels(admission, SOURCES[source], CACHES[cache], on=engine("nvidia"), gateways=gateways)
    on_the_node = cache == "node" and source != "staged"
    wanted = {
        "Deployment/chat": "privileged" if on_the_node else "baseline",
        "Deployment/chat-gateway": "restricted",
    }
    if gateways > 1:
        wanted["Deployment/chat-scaler"] = "restricted"
    if source != "staged" and cache != "unwarmed":
        wanted["Job/chat-prewarm"] = "privileged" if on_the_node else "restricted"
    assert found == wanted


@pytest.mark.parametrize(
    ("vendor", "level"),
    [("nvidia", "baseline"), ("amd", "baseline"), ("cpu", "baseline"), ("ascend", "privileged")],
)
def test_o10_engines_keep_to_the_baseline_but_where_drivers_are_mounted(
    admission: PodSecurity, vendor: str, level: str
) -> None:
    found = levels(admission, SOURCES["hub"], CACHES["claim"], on=engine(vendor), gateways=1)
    assert found["Deployment/chat"] == level
    assert found["Job/chat-prewarm"] == "restricted"


@pytest.mark.parametrize(("source", "cache"), [case for case in CASES if case[1] != "node"], ids=str)
@pytest.mark.parametrize("user", [{}, {"runAsUser": 1000, "runAsGroup": 0, "fsGroup": 2000}], ids=str)
def test_o10_a_service_on_a_restricted_runtime_is_let_in_as_a_whole(
    admission: PodSecurity, source: str, cache: str, user: dict[str, int]
) -> None:
    on = engine("nvidia", podSecurity={"level": "restricted", **user})
    found = levels(admission, SOURCES[source], CACHES[cache], on=on, gateways=2)
    assert found == dict.fromkeys(found, "restricted")
    assert len(found) >= 3
