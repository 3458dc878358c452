"""Releases of the charts of single components over their life on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from noctaya_apiserver import ApiClient
from noctaya_apiserver.client import wait_for
from noctaya_apiserver.world import World
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm, HelmFault, Object

BACKEND = {"name": "vllm", "selector": {"app": "vllm"}}
MODEL = {"source": {"uri": "hf://org/name"}, "claim": {"name": "models"}}


@pytest.fixture
def world(api: ApiClient, request: pytest.FixtureRequest, cluster: Helm) -> Iterator[World]:
    """A namespace; the releases in it are removed."""
    name = f"components-{abs(hash(request.node.name)) % 10**8}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield World(api, name)
    for release in cluster.run("list", "--short", "--namespace", name).split():
        cluster.run("uninstall", release, "--namespace", name)


def apply(cluster: Helm, world: World, chart: str, release: str, values: Object) -> None:
    arguments = ("upgrade", "--install", release, CHARTS / chart, "--namespace", world.namespace)
    cluster.run(*arguments, values=values)


def token(world: World) -> str:
    found = world.get("v1/secrets", "qwen-demand-auth")
    assert found is not None
    return str(found["data"]["token"])


def test_an_upgrade_keeps_the_token_that_gateways_and_scaler_share(cluster: Helm, world: World) -> None:
    values = {"backend": BACKEND, "gateway": {"replicas": 2}}
    apply(cluster, world, "gateway", "qwen", values)
    before = token(world)
    apply(cluster, world, "gateway", "qwen", {**values, "gateway": {"replicas": 3, "maxQueue": 7}})
    assert token(world) == before


def test_one_gateway_after_several_needs_no_scaler(cluster: Helm, world: World) -> None:
    apply(cluster, world, "gateway", "qwen", {"backend": BACKEND, "gateway": {"replicas": 2}})
    assert world.get("apps/v1/deployments", "qwen-scaler")
    apply(cluster, world, "gateway", "qwen", {"backend": BACKEND})
    world.await_gone("apps/v1/deployments", "qwen-scaler")
    world.await_gone("v1/secrets", "qwen-demand-auth")
    world.await_gone("policy/v1/poddisruptionbudgets", "qwen-gateway")
    service = world.get("v1/services", "qwen-scaler")
    assert service is not None
    assert service["spec"]["selector"]["app.kubernetes.io/name"] == "qwen-gateway"
    assert [port["name"] for port in service["spec"]["ports"]] == ["grpc"]


def test_gateways_of_two_releases_report_to_one_scaler(cluster: Helm, world: World) -> None:
    apply(cluster, world, "aggregate-scaler", "qwen", {"backend": {"name": "vllm"}, "gateways": {"count": 2}})
    reporting = {
        "backend": {"selector": {"app": "vllm"}},
        "scaling": {"enabled": False},
        "aggregateScaler": {"url": f"http://qwen-scaler.{world.namespace}.svc:9091"},
        "demandAuth": {"existingSecret": "qwen-demand-auth"},
    }
    for zone in ("a", "b"):
        apply(cluster, world, "gateway", f"qwen-{zone}", reporting)
    deployments = {name for name in world.objects() if name.startswith("deployments/")}
    assert deployments == {
        "deployments/qwen-scaler",
        "deployments/qwen-a-gateway",
        "deployments/qwen-b-gateway",
    }
    assert [name for name in world.objects() if name.startswith("scaledobjects/")] == ["scaledobjects/qwen"]


def test_other_values_replace_the_prewarm_job(cluster: Helm, world: World) -> None:
    apply(cluster, world, "prewarm-agent", "qwen", MODEL)
    (first,) = (name for name in world.objects() if name.startswith("jobs/"))
    apply(cluster, world, "prewarm-agent", "qwen", MODEL)
    assert [name for name in world.objects() if name.startswith("jobs/")] == [first]
    apply(cluster, world, "prewarm-agent", "qwen", {**MODEL, "source": {"uri": "hf://org/name@v2"}})

    def replaced() -> bool:
        jobs = [name for name in world.objects() if name.startswith("jobs/")]
        return len(jobs) == 1 and jobs != [first]

    wait_for(replaced, what="the former Job is gone")


def test_the_operator_s_service_and_a_release_of_its_name_do_not_mix(cluster: Helm, world: World) -> None:
    world.api.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "qwen",
                "namespace": world.namespace,
                "labels": {"app.kubernetes.io/managed-by": "noctaya"},
            },
            "spec": {"ports": [{"port": 80}]},
        }
    )
    with pytest.raises(HelmFault, match=r'Service "qwen" .* exists and cannot be imported'):
        apply(cluster, world, "gateway", "qwen", {"backend": BACKEND})
