"""O3: deletion ends, in every mode, and takes everything along but what the spec retains."""

from __future__ import annotations

import pytest
from noctaya_apiserver import wait_for
from noctaya_apiserver.world import World

CLAIMS = "v1/persistentvolumeclaims"


def deployed(world: World, name: str = "chat", **spec: object) -> None:
    world.create(name, **spec)
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name)


def await_empty(world: World, within: float = 30.0) -> None:
    wait_for(lambda: not world.objects(), within=within, what="everything of the service gone")


def test_o3_a_deleted_service_takes_its_objects_along(world: World) -> None:
    deployed(world)
    world.delete()
    await_empty(world)
    assert world.get("serving.noctaya.io/v1alpha1/llmservices", "chat") is None


def test_o3_a_foreground_deletion_ends(world: World) -> None:
    deployed(world)
    world.delete(propagation="Foreground")
    wait_for(lambda: world.api.find(world.path()) is None, what="the service gone")
    await_empty(world)


def test_o3_an_orphaning_deletion_leaves_the_objects_without_an_owner(world: World) -> None:
    deployed(world)
    world.delete(propagation="Orphan")
    wait_for(lambda: world.api.find(world.path()) is None, what="the service gone")
    left = world.objects()
    assert "deployments/chat" in left
    assert not any(each["metadata"].get("ownerReferences") for each in left.values())


def test_o3_a_retained_claim_outlives_its_service_and_is_taken_up_by_the_next(world: World) -> None:
    deployed(world, cache={"retain": True})
    claim = world.await_object(CLAIMS, "chat-cache")
    world.delete()
    wait_for(lambda: set(world.objects()) == {"persistentvolumeclaims/chat-cache"}, what="all else gone")
    deployed(world, cache={"retain": True})
    again = world.await_object(CLAIMS, "chat-cache")
    assert again["metadata"]["uid"] == claim["metadata"]["uid"]


def test_o3_a_claim_stays_once_retain_is_switched_on(world: World) -> None:
    deployed(world)
    world.change(cache={"retain": True})
    wait_for(
        lambda: not world.await_object(CLAIMS, "chat-cache")["metadata"].get("ownerReferences"),
        what="the claim without an owner",
    )
    world.delete()
    wait_for(lambda: set(world.objects()) == {"persistentvolumeclaims/chat-cache"}, what="all else gone")


def test_a_service_made_again_at_once_gets_objects_of_its_own(world: World) -> None:
    deployed(world)
    world.delete()
    created = world.create()
    world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied")

    def all_new() -> bool:
        owners = {each["metadata"]["ownerReferences"][0]["uid"] for each in world.objects().values()}
        return owners == {created["metadata"]["uid"]} and "scaledobjects/chat" in world.objects()

    wait_for(all_new, within=60.0, what="every object owned by the new service")


@pytest.mark.timeout(240)
def test_o3_a_namespace_of_thirty_services_goes(world: World) -> None:
    for number in range(30):
        world.create(f"chat-{number}")
    for number in range(30):
        world.await_condition(
            "AutoscalingReady", "True", "ScaledObjectApplied", f"chat-{number}", within=60.0
        )
    path = f"/api/v1/namespaces/{world.namespace}"
    world.api.delete(path)
    wait_for(lambda: world.api.find(path) is None, within=90.0, what="the namespace gone")
