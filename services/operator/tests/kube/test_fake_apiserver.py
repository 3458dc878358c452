"""The fake API server does what was seen on a real one (v1.34.4)."""

from __future__ import annotations

from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import Conflict, Forbidden, NotFound
from noctaya_operator.kube.objects import owner_reference
from noctaya_operator.kube.resources import CONFIGMAPS, DEPLOYMENTS, LEASES

Object = dict[str, Any]


@pytest.fixture
def client(fake_apiserver: FakeApiServer) -> KubeClient:
    return fake_apiserver.client()


def config_map(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ns", **metadata},
        "data": {"a": "1"},
    }


def deployment(*, env: list[Object], resources: Object | None = None) -> Object:
    container = {"name": "c", "image": "i:1", "env": env, "resources": resources or {}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }


async def test_o9_quantities_are_stored_in_canonical_form_and_applying_them_again_changes_nothing(
    client: KubeClient,
) -> None:
    wanted = deployment(env=[{"name": "E", "value": ""}], resources={"limits": {"memory": "2048Mi"}})
    made = await client.apply(wanted, field_manager="t")
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {"limits": {"memory": "2Gi"}}
    assert container["env"] == [{"name": "E"}]
    again = await client.apply(wanted, field_manager="t")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_applied_list_items_left_out_are_removed_and_others_items_stay(client: KubeClient) -> None:
    await client.apply(deployment(env=[{"name": "A", "value": "1"}, {"name": "B"}]), field_manager="t")
    foreign = deployment(env=[{"name": "Z", "value": "9"}])
    await client.apply(foreign, field_manager="other")
    left = await client.apply(deployment(env=[{"name": "A", "value": "2"}]), field_manager="t")
    [container] = left["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "2"}, {"name": "Z", "value": "9"}]


async def test_owned_objects_go_with_their_owner_and_others_stay(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    owner = await client.create(config_map("owner"), field_manager="t")
    owned = await client.create(
        config_map("owned", ownerReferences=[owner_reference(owner)]), field_manager="t"
    )
    await client.create(config_map("grandchild", ownerReferences=[owner_reference(owned)]), field_manager="t")
    await client.create(config_map("stranger"), field_manager="t")
    await client.delete(CONFIGMAPS, "ns", "owner")
    assert fake_apiserver.collect_garbage() == 2
    assert [obj["metadata"]["name"] for obj in fake_apiserver.all(CONFIGMAPS)] == ["stranger"]


async def test_o3_foreground_deletion_waits_for_the_dependents(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    owner = await client.create(config_map("owner"), field_manager="t")
    await client.create(config_map("owned", ownerReferences=[owner_reference(owner)]), field_manager="t")
    await client.delete(CONFIGMAPS, "ns", "owner", propagation="Foreground")
    waiting = await client.get(CONFIGMAPS, "ns", "owner")
    assert waiting["metadata"]["deletionTimestamp"]
    fake_apiserver.collect_garbage()
    assert fake_apiserver.all(CONFIGMAPS) == []


async def test_finalizers_hold_an_object_until_they_are_removed(client: KubeClient) -> None:
    await client.create(config_map("held", finalizers=["example.io/hold"]), field_manager="t")
    await client.delete(CONFIGMAPS, "ns", "held")
    await client.patch_merge(CONFIGMAPS, "ns", "held", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "ns", "held")


async def test_nothing_is_created_in_a_terminating_namespace(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    fake_apiserver.terminating_namespaces.add("ns")
    with pytest.raises(Forbidden) as refused:
        await client.create(config_map("a"), field_manager="t")
    assert refused.value.details["causes"][0]["reason"] == "NamespaceTerminating"


async def test_applying_with_a_stale_resource_version_is_a_conflict(client: KubeClient) -> None:
    await client.apply(config_map("a"), field_manager="t")
    with pytest.raises(Conflict):
        await client.apply(config_map("a", resourceVersion="1"), field_manager="t")


async def test_generations_move_with_the_spec_only(client: KubeClient) -> None:
    made = await client.apply(deployment(env=[]), field_manager="t")
    labelled = await client.patch_merge(DEPLOYMENTS, "ns", "web", {"metadata": {"labels": {"x": "y"}}})
    scaled = await client.patch_merge(DEPLOYMENTS, "ns", "web", {"spec": {"replicas": 5}})
    assert [obj["metadata"]["generation"] for obj in (made, labelled, scaled)] == [1, 1, 2]


async def test_kinds_without_generation_have_none(client: KubeClient) -> None:
    lease = await client.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l", "namespace": "ns"},
            "spec": {},
        },
        field_manager="t",
    )
    assert "generation" not in lease["metadata"]
    assert (await client.get(LEASES, "ns", "l"))["kind"] == "Lease"
