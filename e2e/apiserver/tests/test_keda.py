"""O4: KEDA comes later, or goes away: its CRDs only, on a control plane of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from noctaya_apiserver import ControlPlane, keda_crds, wait_for
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.noctaya import OPERATOR, new_namespace, noctaya_plane
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World, condition_of, runtime, stand_ins

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaledobjects.keda.sh"
A_MINUTE = 70.0
"""The minute of the rule, and what a busy machine takes."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane without KEDA's CRDs."""
    with noctaya_plane(tmp_path_factory.mktemp("bare"), keda=False) as plane:
        plane.client().apply(runtime())
        with stand_ins(plane):
            yield plane


@pytest.mark.timeout(300)  # KEDA is looked for every half minute, and comes and goes three times
def test_o4_keda_absent_then_installed_then_removed_then_back(
    bare: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> None:
    api = bare.client()
    world = World(api, new_namespace(api))
    operator = OperatorProcess(bare.kubeconfig(OPERATOR), tmp_path_factory.mktemp("operator"))
    operator.start()
    try:
        world.create()
        status = world.await_condition("AutoscalingReady", "False", "AutoscalingUnavailable")
        assert condition_of(status, "Ready") == ("False", "AutoscalingUnavailable")
        assert world.get("apps/v1/deployments", "chat") is None
        assert operator.ready()

        api.install(keda_crds())
        world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", within=A_MINUTE)
        scale(api, namespace=world.namespace, deployment="chat", replicas=1)
        world.await_phase("Ready")
        backend = world.await_object("apps/v1/deployments", "chat")

        api.delete(CRD)
        wait_for(lambda: api.find(CRD) is None, what="the CRD gone")
        status = world.await_condition("AutoscalingReady", "False", "AutoscalingUnavailable", within=A_MINUTE)
        assert condition_of(status, "Ready") == ("True", "Available"), "a backend that serves still serves"
        again = world.await_object("apps/v1/deployments", "chat")
        assert again["metadata"]["uid"] == backend["metadata"]["uid"]
        assert again["spec"] == backend["spec"]

        api.install(keda_crds())
        world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", within=A_MINUTE)
        assert world.get("keda.sh/v1alpha1/scaledobjects", "chat") is not None
        assert operator.child.running
    finally:
        operator.stop()
