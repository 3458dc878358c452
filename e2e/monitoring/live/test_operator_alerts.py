"""Each alert about the operator and what it sees fires when its fault is caused in the running system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
from noctaya_apiserver.client import ApiClient
from noctaya_apiserver.keda_stand_in import scale
from noctaya_monitoring.fleet import MODELS, Fleet
from noctaya_monitoring.processes import Server
from noctaya_monitoring.prometheus import Prometheus

from .conftest import STALLED

WITHIN = 90.0
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/noctaya-operator"


def test_a_download_that_stands_still(
    prometheus: Prometheus,
    fleet: Fleet,
    server: Callable[..., Server],
    stalled_hub: str,
    agent_address: str,
    tmp_path: Path,
) -> None:
    env = {
        "NOCTAYA_PREWARM_ENDPOINT": stalled_hub,
        "NOCTAYA_PREWARM_LISTEN_ADDR": f"{agent_address}:8080",
        "NOCTAYA_PREWARM_TERMINATION_LOG": str(tmp_path / "termination"),
    }
    source = f"hf://{STALLED}"
    command = ("download", f"--source={source}", f"--target={tmp_path / 'cache' / 'model'}")
    (tmp_path / "cache").mkdir()
    agent = server("noctaya-prewarm", *command, name="agent", env=env)
    world = fleet.world()
    world.create("heavy", model={"source": {"uri": source}}, cache={"prewarm": True})
    world.await_phase("Prewarming", "heavy")
    prometheus.await_firing("NoctayaPrewarmStalled", within=WITHIN, namespace=MODELS, llmservice="heavy")
    agent.child.check_running()
    answer = httpx.get(f"http://{agent_address}:8080/progress", trust_env=False).json()
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
