"""The operator does its work as the ServiceAccount that the chart makes, with that and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_apiserver.client import Object, wait_for
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.users import User, write_kubeconfig
from noctaya_apiserver.world import World, runtime, stand_ins
from noctaya_charts.generated import CHARTS
from noctaya_charts.helm import Helm

SYSTEM = "noctaya-system"
ACCOUNT = "noctaya-controller-manager"
USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"


@pytest.fixture
def here(plane: ControlPlane, api: ApiClient, cluster: Helm, own_crds: tuple[str, ...]) -> Iterator[World]:
    """The namespace `ours`, in which the chart gives the operator rights, and those alone."""
    for name in (SYSTEM, "ours", "theirs"):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    values = {"namespaces": ["ours"], "gateway": {"replicas": 2}}
    cluster.run("install", "noctaya", CHARTS / "operator", "--namespace", SYSTEM, values=values)
    api.wait_for_crds(own_crds)
    with stand_ins(plane):
        yield World(api, "ours")
    cluster.run("uninstall", "noctaya", "--namespace", SYSTEM)


def kubeconfig(plane: ControlPlane, api: ApiClient, folder: Path) -> Path:
    """One for the chart's ServiceAccount, as a Pod has it."""
    request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
    token = api.request("POST", path, request)["status"]["token"]
    file = folder / "operator.kubeconfig"
    write_kubeconfig(User(USER, token=token), file, server=plane.server, ca_file=plane.ca_file)
    return file


def test_the_rights_of_the_chart_are_enough_for_the_whole_life_of_a_service(
    plane: ControlPlane, api: ApiClient, here: World, tmp_path: Path
) -> None:
    api.apply(runtime())
    theirs = World(api, "theirs")
    operator = OperatorProcess(
        kubeconfig(plane, api, tmp_path),
        tmp_path,
        "--namespaces=ours",
        "--gateway-replicas=2",
        "--leader-elect=true",
        f"--leader-election-namespace={SYSTEM}",
    )
    theirs.create(resources={"accelerators": 0})
    operator.start()
    try:
        here.create(
            resources={"accelerators": 0}, cache={"strategy": "SharedPVC", "prewarm": True, "size": "1Gi"}
        )
        here.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", within=60)
        here.change(scaling={"max": 3})
        wait_for(
            lambda: (
                (here.get("keda.sh/v1alpha1/scaledobjects", "chat") or {})["spec"]["maxReplicaCount"] == 3
            ),
            what="the change is applied",
        )
        assert theirs.status() == {}
        here.delete()
        here.await_gone("serving.noctaya.io/v1alpha1/llmservices", "chat")
    finally:
        operator.stop()
    refused = {
        (each.verb, each.resource, each.subresource, each.namespace)
        for each in plane.requests()
        if each.user == USER and each.code == 403
    }
    assert refused == set()
