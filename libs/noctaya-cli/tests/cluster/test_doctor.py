"""Each finding of `noctaya doctor`, by breaking one thing of a healthy cluster."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from noctaya_cli.cluster.access import Cluster
from noctaya_cli.cluster.doctor import draw_finding, examine, summary
from noctaya_cli.cluster.finding import Finding, Level
from noctaya_cli.main import app
from typer.testing import CliRunner

from . import objects
from .conftest import NOW
from .fake_api import FakeApi


def bad(cluster: Cluster) -> list[tuple[str, str, str]]:
    found = examine(cluster, now=NOW)
    return [(each.level, each.area, each.what) for each in found if each.level is not Level.GOOD]


def test_a_healthy_cluster_has_nothing_wrong(cluster: Cluster) -> None:
    found = list(examine(cluster, now=NOW))
    assert bad(cluster) == []
    assert [*dict.fromkeys(each.area for each in found)] == [
        "kubernetes", "crds", "keda", "dns", "operator", "rights", "storage", "gateways", "demand",
        "services",
    ]  # fmt: skip
    assert summary(found) == "nothing wrong was found"


Break = Callable[[FakeApi], None]


def with_services(*services: Any) -> Break:
    def change(api: FakeApi) -> None:
        api.collections[objects.ALL_SERVICES] = list(services)

    return change


def deployments(*found: Any) -> Break:
    def change(api: FakeApi) -> None:
        api.collections[objects.DEPLOYMENTS] = list(found)

    return change


def answers(text: str) -> Break:
    def change(api: FakeApi) -> None:
        api.texts[objects.metrics_path(objects.gateway_pod())] = text

    return change


def without(path: str) -> Break:
    def change(api: FakeApi) -> None:
        if path in api.objects:
            del api.objects[path]
        else:
            api.collections[path] = []

    return change


def leases(*found: Any) -> Break:
    def change(api: FakeApi) -> None:
        api.collections["/apis/coordination.k8s.io/v1/namespaces/noctaya-system/leases"] = list(found)

    return change


def refusing(verb: str) -> Break:
    def change(api: FakeApi) -> None:
        api.allowed = lambda attributes: attributes["verb"] != verb

    return change


def wrong_class(api: FakeApi) -> None:
    service = objects.llm_service()
    service["spec"]["cache"] = {"storageClassName": "fast"}
    api.collections[objects.ALL_SERVICES] = [service]


def old_kubernetes(api: FakeApi) -> None:
    api.objects["/version"] = {"gitVersion": "v1.29.1"}


def metrics_api_down(api: FakeApi) -> None:
    api.objects["/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"] = {
        "status": {"conditions": [{"type": "Available", "status": "False", "message": "no endpoints"}]}
    }


def two_images(api: FakeApi) -> None:
    other = objects.gateway_pod(number=2)
    other["spec"]["containers"][0]["image"] = "ghcr.io/noctaya/noctaya-gateway:0.4.0"
    api.collections["/api/v1/pods"].append(other)
    api.texts[objects.metrics_path(other)] = objects.metrics()


@pytest.mark.parametrize(
    ("broken", "level", "area", "what"),
    [
        (old_kubernetes, "problem", "kubernetes", "v1.29.1"),
        (without(f"{objects.CRDS}/llmservices.serving.noctaya.io"), "problem", "crds", "not installed"),
        (without(f"{objects.CRDS}/scaledobjects.keda.sh"), "problem", "keda", "KEDA is not installed"),
        (deployments(objects.operator(), objects.keda(ready=0)), "problem", "keda", "has no ready Pod"),
        (deployments(objects.operator()), "warning", "keda", "no Deployment of KEDA's operator"),
        (metrics_api_down, "problem", "keda", "no endpoints"),
        (
            without("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"),
            "problem",
            "dns",
            "no ready endpoint",
        ),
        (without("/api/v1/namespaces/kube-system/services"), "warning", "dns", "kube-dns"),
        (deployments(objects.keda()), "problem", "operator", "no operator is installed"),
        (deployments(objects.operator(ready=0), objects.keda()), "problem", "operator", "none of 1 Pods"),
        (leases(), "problem", "operator", "ever led"),
        (leases(objects.lease(holder="")), "problem", "operator", "no operator leads"),
        (
            leases(objects.lease(renewed="2026-11-30T09:58:00.000000Z")),
            "problem",
            "operator",
            "has not renewed its Lease for 120 s",
        ),
        (
            deployments(objects.operator(image="ghcr.io/noctaya/noctaya:0.4.0"), objects.keda()),
            "warning",
            "versions",
            "the operator is 0.4.0",
        ),
        (refusing("patch"), "problem", "rights", "patch services, patch pods"),
        (without("/apis/storage.k8s.io/v1/storageclasses"), "warning", "storage", "no default StorageClass"),
        (wrong_class, "problem", "storage", "models/chat asks for StorageClass fast"),
        (without("/api/v1/pods"), "problem", "gateways", "models/chat: no gateway is ready"),
        (two_images, "warning", "versions", "noctaya-gateway:0.4.0 (1)"),
        (answers(objects.metrics(streams=0)), "problem", "demand", "KEDA has no stream open"),
        (answers(objects.metrics(undelivered=31)), "problem", "demand", "has waited 31 s"),
        (
            with_services(
                objects.llm_service(conditions=[objects.condition("Degraded", "True", "OOMKilled")])
            ),
            "problem",
            "services",
            "models/chat: OOMKilled",
        ),
        (with_services(objects.llm_service(observedGeneration=1)), "warning", "services", "newest spec"),
    ],
)
def test_one_broken_thing_is_found(
    api: FakeApi, cluster: Cluster, broken: Break, level: str, area: str, what: str
) -> None:
    broken(api)
    matching = [each for each in bad(cluster) if each[:2] == (level, area) and what in each[2]]
    assert len(matching) == 1, bad(cluster)


def test_every_problem_has_a_remedy(api: FakeApi, cluster: Cluster) -> None:
    faults = (old_kubernetes, metrics_api_down, wrong_class, leases(), refusing("get"), two_images)
    for broken in (*faults, answers(objects.metrics(streams=0, undelivered=9))):
        broken(api)
    found = [each for each in examine(cluster, now=NOW) if each.level in {Level.PROBLEM, Level.WARNING}]
    assert len(found) >= 7
    assert [each for each in found if not each.remedy] == []


def test_what_can_not_be_looked_at_does_not_end_the_examination(api: FakeApi, cluster: Cluster) -> None:
    api.forbidden |= {"/storageclasses", "/secrets/", "/proxy/", "/customresourcedefinitions"}
    service = objects.llm_service()
    service["spec"]["scaling"]["externalScaler"] = {"tls": {"serverSecretName": "scaler-tls"}}
    with_services(service)(api)
    found = list(examine(cluster, now=NOW))
    unknown = {each.area for each in found if each.level is Level.UNKNOWN}
    assert unknown == {"crds", "keda", "storage", "demand", "certificates"}
    assert any(each.area == "services" and each.level is Level.GOOD for each in found)
    assert summary(found) == (
        "nothing wrong was found; 5 could not be looked at: the roles noctaya-doctor and noctaya-observer "
        "may (examples/security/roles)"
    )


def two_services(api: FakeApi) -> Any:
    other = objects.gateway_pod("other")
    api.collections[objects.ALL_SERVICES].append(objects.llm_service("other"))
    api.collections["/api/v1/pods"].append(other)
    return other


def test_one_pod_that_can_not_be_asked_hides_no_other(api: FakeApi, cluster: Cluster) -> None:
    two_services(api)  # whose metrics the API server doesn't know
    answers(objects.metrics(streams=0))(api)
    found = [(level, what.split(":")[0]) for level, area, what in bad(cluster) if area == "demand"]
    assert found == [("problem", "models/chat"), ("unknown", "models/other")]


def test_with_an_aggregate_scaler_streams_are_its_and_undelivered_demand_the_gateways(
    api: FakeApi, cluster: Cluster
) -> None:
    scaler = objects.gateway_pod()
    scaler["metadata"]["name"] = "chat-scaler-1"
    scaler["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "noctaya",
        "serving.noctaya.io/scaler": "chat",
    }
    api.collections["/api/v1/pods"].append(scaler)
    answers(objects.metrics(streams=0, undelivered=12))(api)
    api.texts[objects.metrics_path(scaler, 9091)] = objects.metrics(streams=1)
    assert [(level, what) for level, area, what in bad(cluster) if area == "demand"] == [
        ("problem", "models/chat: demand of a cold request has waited 12 s for the scaler")
    ]


def test_a_pod_that_leaves_is_not_asked(api: FakeApi, cluster: Cluster) -> None:
    two_services(api)["metadata"]["deletionTimestamp"] = "2026-11-30T09:59:59Z"
    assert [area for _, area, _ in bad(cluster) if area == "demand"] == []


def test_the_exit_code_tells_scripts(api: FakeApi, tmp_path: Path) -> None:
    file = str(api.kubeconfig(tmp_path))
    api.collections["/apis/coordination.k8s.io/v1/namespaces/noctaya-system/leases"] = []
    result = CliRunner().invoke(app, ["doctor", "-o", "json", "--kubeconfig", file])
    assert result.exit_code == 1
    assert any(each["level"] == "problem" for each in json.loads(result.stdout))


def test_a_finding_is_folded_under_its_sign() -> None:
    finding = Finding(area="dns", level=Level.PROBLEM, what="word " * 20, remedy="do " * 20)
    lines = list(draw_finding(finding, width=60))
    assert lines[0].startswith("✖ dns          word")
    assert all(line.startswith(" " * 15) for line in lines[1:])
    assert sum("→" in line for line in lines) == 1
    assert max(map(len, lines)) <= 60
