"""L4: one gateway, several, and back: the aggregate scaler comes and goes, and KEDA's address stays."""

from __future__ import annotations

from collections.abc import Callable

from noctaya_apiserver import wait_for
from noctaya_apiserver.client import Object
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World

ONLY_AGGREGATED = {"secrets/chat-demand-auth", "deployments/chat-scaler", "poddisruptionbudgets/chat-gateway"}

Start = Callable[..., OperatorProcess]


def scaler_service(world: World) -> Object:
    return world.await_object("v1/services", "chat-scaler")


def gateway_of(world: World) -> Object:
    return world.await_object("apps/v1/deployments", "chat-gateway")


def restarted(world: World, start: Start, gateways: int) -> OperatorProcess:
    operator = start(f"--gateway-replicas={gateways}")
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    return operator


def test_l4_from_one_gateway_to_two_and_back(bench: World, start_operator: Start) -> None:
    bench.create()
    restarted(bench, start_operator, 1).stop()
    alone = bench.objects()
    assert not ONLY_AGGREGATED & set(alone)
    address = scaler_service(bench)["spec"]["clusterIP"]

    two = start_operator("--gateway-replicas=2")
    wait_for(lambda: set(alone) | ONLY_AGGREGATED == set(bench.objects()), what="an aggregate scaler")
    wait_for(lambda: gateway_of(bench)["spec"]["replicas"] == 2, what="two gateways")
    selector = {"serving.noctaya.io/scaler": "chat"}
    wait_for(
        lambda: selector.items() <= scaler_service(bench)["spec"]["selector"].items(),
        what="the Service at the aggregate scaler",
    )
    budget = f"/apis/policy/v1/namespaces/{bench.namespace}/poddisruptionbudgets/chat-gateway"
    bench.api.merge(budget, {"spec": {"minAvailable": 2}}, manager="kubectl-edit")
    wait_for(lambda: bench.api.get(budget)["spec"]["minAvailable"] == 1, what="the budget set back")
    two.stop()

    start_operator("--gateway-replicas=1")
    wait_for(lambda: set(bench.objects()) == set(alone), what="what several gateways need gone")
    selector = {"serving.noctaya.io/gateway": "chat"}
    assert selector.items() <= scaler_service(bench)["spec"]["selector"].items()
    assert scaler_service(bench)["spec"]["clusterIP"] == address
    kept = {name: obj["metadata"]["uid"] for name, obj in bench.objects().items()}
    assert kept == {name: obj["metadata"]["uid"] for name, obj in alone.items()}


def test_l7_a_foreign_demand_secret_is_refused_and_nothing_is_made(
    bench: World, start_operator: Start
) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "chat-demand-auth", "namespace": bench.namespace},
        "stringData": {"token": "x" * 43},
    }
    bench.api.create(theirs)
    bench.create()
    start_operator("--gateway-replicas=2")
    bench.await_condition("Degraded", "True", "NameConflict")
    assert set(bench.objects()) == {"secrets/chat-demand-auth"}


def test_l8_a_demand_secret_of_ours_with_a_short_token_is_named(bench: World, start_operator: Start) -> None:
    bench.create()
    operator = start_operator("--gateway-replicas=2")
    bench.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    operator.stop()
    path = f"/api/v1/namespaces/{bench.namespace}/secrets/chat-demand-auth"
    bench.api.merge(path, {"stringData": {"token": "short"}})
    start_operator("--gateway-replicas=2")
    status = bench.await_condition("Degraded", "True", "DemandAuthentication")
    assert {each["type"]: each["status"] for each in status["conditions"]}["AutoscalingReady"] == "True"
