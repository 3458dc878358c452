"""Each alert about the operator and what it sees fires when its fault is caused in the running system."""

from __future__ import annotations

import httpx
from noctaya_apiserver.client import ApiClient
from noctaya_apiserver.keda_stand_in import scale
from noctaya_monitoring.fleet import MODELS, Fleet
from noctaya_monitoring.prometheus import Prometheus

WITHIN = 90.0
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/noctaya-operator"


def test_a_download_that_stands_still(prometheus: Prometheus, download: str) -> None:
    prometheus.await_firing("NoctayaPrewarmStalled", within=WITHIN, namespace=MODELS, llmservice="heavy")
    answer = httpx.get(f"{download}/progress", trust_env=False).json()
    by = f"llmservice=heavy,namespace={MODELS}"
    for metric, said in (("done", "bytesDone"), ("total", "bytesTotal")):
        seen = prometheus.values(f"sum by (namespace, llmservice) (noctaya_operator_prewarm_bytes_{metric})")
        assert seen == {by: answer[said]}


def test_a_degraded_service(prometheus: Prometheus, fleet: Fleet) -> None:
    world = fleet.world()
    world.create("broken", runtime={"name": "missing"})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", "broken")
    scale(fleet.plane.client(), namespace=MODELS, deployment="broken", replicas=1)
    prometheus.await_firing("NoctayaServiceDegraded", within=WITHIN)
    world.delete("broken")
    prometheus.await_silence("NoctayaServiceDegraded", within=WITHIN)


def test_a_right_that_the_operator_lost(prometheus: Prometheus, fleet: Fleet) -> None:
    api = fleet.plane.client()
    whole = api.get(ROLE)
    without = [rule for rule in whole["rules"] if "services" not in rule["resources"]]
    assert len(without) == len(whole["rules"]) - 1
    change_role(api, without)
    try:
        fleet.world().create("refused")
        found = prometheus.await_firing("NoctayaReconcileErrors", within=WITHIN)
    finally:
        change_role(api, whole["rules"])
    assert found == {"controller": "llmservice"}


def change_role(api: ApiClient, rules: list[object]) -> None:
    role = api.get(ROLE)
    api.replace({**role, "rules": rules})


def test_operators_that_are_gone(prometheus: Prometheus, fleet: Fleet) -> None:
    assert not prometheus.firing("NoctayaOperatorNotReconciling")
    for operator in fleet.operators.values():
        assert operator.stop() == 0
    prometheus.await_firing("NoctayaOperatorNotReconciling", within=WITHIN)
