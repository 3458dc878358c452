"""O2: nothing foreign is adopted, and services whose derived names meet never cross-wire."""

from __future__ import annotations

import pytest
from noctaya_apiserver import wait_for
from noctaya_apiserver.client import Object
from noctaya_apiserver.world import World


def foreign(world: World, kind: str, name: str) -> Object:
    metadata = {"name": name, "namespace": world.namespace}
    bodies: dict[str, Object] = {
        "Service": {"apiVersion": "v1", "spec": {"ports": [{"port": 1}]}},
        "Secret": {"apiVersion": "v1", "stringData": {"token": "x" * 43}},
        "PersistentVolumeClaim": {
            "apiVersion": "v1",
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "50Gi"}},
            },
        },
        "Deployment": {
            "apiVersion": "apps/v1",
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "mine"}},
                "template": {
                    "metadata": {"labels": {"app": "mine"}},
                    "spec": {"containers": [{"name": "mine", "image": "mine"}]},
                },
            },
        },
        "ScaledObject": {
            "apiVersion": "keda.sh/v1alpha1",
            "spec": {"scaleTargetRef": {"name": "mine"}, "triggers": [{"type": "cron", "metadata": {}}]},
        },
    }
    return {"kind": kind, "metadata": metadata, **bodies[kind]}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Service", "chat"),
        ("Service", "chat-pods"),
        ("Service", "chat-scaler"),
        ("Deployment", "chat"),
        ("Deployment", "chat-gateway"),
        ("PersistentVolumeClaim", "chat-cache"),
        ("ScaledObject", "chat"),
    ],
)
def test_o2_a_foreign_object_under_a_name_of_ours_stops_everything(
    world: World, kind: str, name: str
) -> None:
    theirs = world.api.create(foreign(world, kind, name))
    world.create()
    status = world.await_condition("Degraded", "True", "NameConflict")
    (said,) = {each["message"] for each in status["conditions"] if each["type"] == "Degraded"}
    assert f"{kind} {world.namespace}/{name}" in said or f"{kind} {name}" in said
    (left,) = world.objects().values()
    assert left["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert left.get("spec") == theirs.get("spec")


def test_o2_two_services_whose_names_meet_never_share_an_object(world: World) -> None:
    """The gateway Deployment of `chat` and the backend of a service `chat-gateway` have one name."""
    first = world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    before = world.objects()
    world.create("chat-gateway")
    world.await_condition("Degraded", "True", "NameConflict", "chat-gateway")
    after = world.objects()
    assert set(after) == set(before)
    owners = {each["metadata"]["ownerReferences"][0]["uid"] for each in after.values()}
    assert owners == {first["metadata"]["uid"]}


def test_o2_a_service_goes_on_once_the_name_is_free(world: World) -> None:
    blocking = foreign(world, "Service", "chat-backend")
    world.api.create(blocking)
    world.create()
    world.await_condition("Degraded", "True", "NameConflict")
    world.api.delete(f"/api/v1/namespaces/{world.namespace}/services/chat-backend")
    world.change(imagePullSecrets=[{"name": "again"}])  # what is foreign is looked at only once a minute
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")


def test_an_object_deleted_by_hand_comes_back(world: World) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    old = world.await_object("v1/services", "chat-backend")["metadata"]["uid"]
    world.api.delete(f"/api/v1/namespaces/{world.namespace}/services/chat-backend")
    wait_for(
        lambda: world.await_object("v1/services", "chat-backend")["metadata"]["uid"] != old,
        what="another Service chat-backend",
    )


def test_a_field_of_ours_changed_by_hand_is_set_back_and_others_are_left(world: World) -> None:
    world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments/chat-gateway"
    changes = {"metadata": {"annotations": {"team": "a"}}, "spec": {"replicas": 7, "minReadySeconds": 3}}
    world.api.merge(path, changes, manager="kubectl-edit")
    wait_for(lambda: world.api.get(path)["spec"]["replicas"] == 1, what="one gateway again")
    after = world.api.get(path)
    assert after["metadata"]["annotations"]["team"] == "a"
    assert after["spec"]["minReadySeconds"] == 3
