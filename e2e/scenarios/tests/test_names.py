"""O2: services whose derived names collide, and objects that belong to somebody else."""

from __future__ import annotations

from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.scene import Scene


def test_o2_services_whose_names_collide_are_never_cross_wired(scene: Scene) -> None:
    client = scene.deploy("chat")
    assert client.ask().status == 200
    before = _uids(scene, "chat")
    scene.create("chat-gateway", **service_spec(scene.runtime("other")))
    status = scene.await_condition("Degraded", "True", "NameConflict", "chat-gateway")
    message = next(each["message"] for each in status["conditions"] if each["type"] == "Degraded")
    assert "chat-gateway" in message
    assert scene.objects(of="chat-gateway") == {}, "something was made for a service that can't be"
    assert _uids(scene, "chat") == before
    assert client.ask().status == 200
    scene.delete("chat")
    scene.await_idle("chat-gateway")
    assert scene.client("chat-gateway").ask().status == 200


def test_o2_an_object_of_somebody_else_is_neither_changed_nor_adopted(scene: Scene) -> None:
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat-backend", "namespace": scene.namespace},
        "spec": {"ports": [{"port": 1}], "selector": {"app": "theirs"}},
    }
    made = scene.api.create(foreign)
    scene.create("chat", **service_spec(scene.runtime()))
    scene.await_condition("Degraded", "True", "NameConflict")
    assert scene.objects(of="chat") == {}
    kept = scene.await_object("v1/services", "chat-backend")
    assert kept["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    scene.api.delete(f"/api/v1/namespaces/{scene.namespace}/services/chat-backend")
    scene.await_idle()


def _uids(scene: Scene, name: str) -> dict[str, str]:
    return {path: obj["metadata"]["uid"] for path, obj in scene.objects(of=name).items()}
