"""Installing the chart, with KEDA and before it."""

from __future__ import annotations

import pytest
from noctaya_apiserver import Refused
from noctaya_scenarios import faults
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.release import LEASE, NAMESPACE, OPERATOR
from noctaya_scenarios.scene import Scene, holds
from noctaya_scenarios.turns import Turns
from noctaya_scenarios.waiting import until

pytestmark = pytest.mark.first

SOON_SECONDS = 120


def test_installing_the_chart_gives_a_working_operator_and_leaves_services_alone(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    client = scene.deploy()
    before = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
    with turns.alone():
        lab.release.uninstall()
        with pytest.raises(Refused):
            lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{OPERATOR}")
        assert client.ask().status == 200, "a service needs no operator to wake up"
        notes = lab.release.install(gateways=lab.gateways)
        assert "kubectl" in notes, "the notes say how to go on"
        deployment = lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{OPERATOR}")
        assert deployment["status"]["readyReplicas"] == deployment["spec"]["replicas"] == 2
        until(lambda: lab.api.get(LEASE)["spec"].get("holderIdentity"), within=SOON_SECONDS, what="a leader")
    scene.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    after = {path: obj["metadata"]["uid"] for path, obj in scene.objects(of="chat").items()}
    assert after == before
    assert scene.deploy("new").ask().status == 200, "what is installed works"


def test_o4_an_operator_that_came_before_keda_goes_on_once_keda_is_there(
    lab: Lab, scene: Scene, turns: Turns
) -> None:
    with turns.alone(), faults.keda_absent(lab.api):
        lab.release.uninstall()
        notes = lab.release.install(gateways=lab.gateways)
        assert "KEDA" in notes
        scene.create("chat", **service_spec(scene.runtime()))
        scene.await_condition("AutoscalingReady", "False", "AutoscalingUnavailable")
        assert scene.get("apps/v1/deployments", "chat") is None, "a backend without an autoscaler"
        deployment = lab.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{OPERATOR}")
        assert holds(deployment["status"], "Available")
    scene.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", within=SOON_SECONDS)
    scene.await_idle()
    assert scene.client().ask().status == 200
