"""The annotation `keep` on a real API server: obeyed through the ScaledObject, never through replicas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from noctaya_api import names
from noctaya_apiserver import ApiClient, ControlPlane, wait_for
from noctaya_apiserver.client import Object, Refused
from noctaya_apiserver.keda_stand_in import scale
from noctaya_apiserver.world import World, condition_of

SCALED_OBJECTS = "keda.sh/v1alpha1/scaledobjects"
RBAC = "rbac.authorization.k8s.io/v1"


def keep(world: World, text: str | None, *, api: ApiClient | None = None) -> None:
    body = {"metadata": {"annotations": {names.ANNOTATION_KEEP: text}}}
    (api or world.api).merge(world.path(), body)


def asked_of_keda(world: World) -> tuple[int, str | None]:
    """The minimum, and the number of replicas that the ScaledObject is paused at."""
    found = world.await_object(SCALED_OBJECTS, "chat")
    annotations = found["metadata"].get("annotations") or {}
    return found["spec"]["minReplicaCount"], annotations.get(names.ANNOTATION_KEDA_PAUSED_REPLICAS)


@contextmanager
def somebody(plane: ControlPlane, world: World, *verbs: str) -> Iterator[ApiClient]:
    """Who may do this with the services of the namespace, and nothing else."""
    name, where = "somebody", f"/api/v1/namespaces/{world.namespace}"
    metadata = {"name": name, "namespace": world.namespace}
    world.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    rule = {"apiGroups": [names.GROUP], "resources": ["llmservices"], "verbs": list(verbs)}
    world.api.create({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": [rule]})
    world.api.create(
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        }
    )
    request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = world.api.request("POST", f"{where}/serviceaccounts/{name}/token", request)
    client = ApiClient(plane.server, token=answer["status"]["token"], ca_file=plane.ca_file)
    try:
        yield client
    finally:
        client.close()


def test_awake_then_asleep_then_by_demand_again(world: World) -> None:
    world.create(scaling={"max": 3})
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    keep(world, "awake 2")
    world.await_condition("Kept", "False", "Waking")
    assert asked_of_keda(world) == (2, None)
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=2)
    status = world.await_condition("Kept", "True", "Awake")
    assert status["keep"] == {"state": "Awake", "replicas": 2}

    keep(world, "asleep")
    world.await_condition("Kept", "False", "FallingAsleep")
    assert asked_of_keda(world) == (0, "0")
    scale(world.api, namespace=world.namespace, deployment="chat", replicas=0)
    status = world.await_condition("Kept", "True", "Asleep")
    assert status["phase"] == "ScaledToZero"
    assert condition_of(status, "AutoscalingReady") == ("True", "ScaledObjectApplied")

    keep(world, None)
    status = world.await_status(lambda found: "keep" not in found)
    assert condition_of(status, "Kept") == ("", "")
    assert asked_of_keda(world) == (0, None)
    told = {"KeptAwake", "KeptAsleep", "KeepEnded"}
    wait_for(lambda: told <= {event["reason"] for event in world.events()}, what="Events of all three")


def test_a_time_ends_it(world: World) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    until = (datetime.now(UTC) + timedelta(seconds=30)).replace(microsecond=0)
    keep(world, f"awake until {until.isoformat()}")
    status = world.await_status(lambda found: "keep" in found)
    assert datetime.fromisoformat(status["keep"]["until"]) == until
    world.await_status(lambda found: "keep" not in found, within=120)
    assert datetime.now(UTC) >= until
    assert asked_of_keda(world) == (0, None)


def test_what_cannot_be_read_is_said_and_harms_nobody(world: World) -> None:
    world.create()
    keep(world, "forever")
    status = world.await_condition("Kept", "False", "InvalidKeep")
    assert "keep" not in status
    world.await_phase("ScaledToZero")


def test_it_takes_no_other_right_than_to_patch_services(world: World, plane: ControlPlane) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    with somebody(plane, world, "get", "patch") as api:
        keep(world, "awake", api=api)
        world.await_condition("Kept", "False", "Waking")
        assert api.get(world.path())["status"]["keep"] == {"state": "Awake", "replicas": 1}
        with pytest.raises(Refused, match="cannot get resource"):
            api.get(f"/apis/apps/v1/namespaces/{world.namespace}/deployments/chat")
