"""The client against the fake API server over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from fake_apiserver import FakeApiServer
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KindAbsent,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
    Unauthorized,
)
from noctaya_operator.kube.resources import CONFIGMAPS, DEPLOYMENTS, PODS
from noctaya_operator.kube.transport import RequestDone

Object = dict[str, Any]


def config_map(name: str = "one", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "ns"},
        "data": data,
    }


def deployment(**spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
            **spec,
        },
    }


@pytest.fixture
def client(fake_apiserver: FakeApiServer) -> KubeClient:
    return fake_apiserver.client()


async def test_objects_are_created_read_patched_replaced_and_deleted(client: KubeClient) -> None:
    made = await client.create(config_map(a="1"), field_manager="t")
    assert (await client.get(CONFIGMAPS, "ns", "one")) == made
    patched = await client.patch_merge(CONFIGMAPS, "ns", "one", {"data": {"a": None, "b": "2"}})
    assert patched["data"] == {"b": "2"}
    replaced = await client.replace({**patched, "data": {"c": "3"}})
    assert replaced["data"] == {"c": "3"}
    await client.delete(CONFIGMAPS, "ns", "one", uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "ns", "one")


async def test_refusals_are_types(client: KubeClient, fake_apiserver: FakeApiServer) -> None:
    made = await client.create(config_map(), field_manager="t")
    with pytest.raises(AlreadyExists):
        await client.create(config_map(), field_manager="t")
    await client.patch_merge(CONFIGMAPS, "ns", "one", {"data": {"x": "y"}})
    with pytest.raises(Conflict):
        await client.replace(made)
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "ns", "one", uid="another")
    fake_apiserver.admission.append(lambda verb, resource, obj: "quota exceeded")
    with pytest.raises(Forbidden, match="quota exceeded"):
        await client.create(config_map("two"), field_manager="t")
    fake_apiserver.faults.fail(status=422, reason="Invalid")
    with pytest.raises(Invalid):
        await client.create(config_map("three"), field_manager="t")


async def test_a_kind_that_is_not_served_is_told_from_a_missing_object(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    with pytest.raises(NotFound) as missing:
        await client.get(SCALED_OBJECTS, "ns", "x")
    assert not isinstance(missing.value, KindAbsent)
    fake_apiserver.withdraw(SCALED_OBJECTS)
    with pytest.raises(KindAbsent):
        await client.get(SCALED_OBJECTS, "ns", "x")
    with pytest.raises(KindAbsent):
        await client.list(SCALED_OBJECTS)


async def test_list_items_carry_kind_and_api_version(client: KubeClient) -> None:
    await client.create(config_map(), field_manager="t")
    page = await client.list(CONFIGMAPS, "ns")
    assert [(item["kind"], item["apiVersion"]) for item in page.items] == [("ConfigMap", "v1")]


async def test_lists_follow_pages_and_start_over_when_the_server_forgets_them(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    names = [f"cm-{number}" for number in range(5)]
    for name in names:
        fake_apiserver.put(config_map(name))
    whole = await client.list_all(CONFIGMAPS, page_size=2)
    assert [item["metadata"]["name"] for item in whole.items] == names
    first = await client.list(CONFIGMAPS, limit=2)
    fake_apiserver.expire_history()
    with pytest.raises(Gone):
        await client.list(CONFIGMAPS, limit=2, continue_=first.continue_)
    fake_apiserver.faults.fail(status=410, reason="Expired", verb="list")
    with pytest.raises(Gone):
        await client.list_all(CONFIGMAPS, page_size=2)


async def test_selectors_reach_the_server(client: KubeClient, fake_apiserver: FakeApiServer) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {})):
        obj = config_map(name)
        obj["metadata"]["labels"] = labels
        fake_apiserver.put(obj)

    async def names(**selectors: Any) -> list[str]:
        return [item["metadata"]["name"] for item in (await client.list(CONFIGMAPS, **selectors)).items]

    assert await names(label_selector="x=1") == ["a"]
    assert await names(label_selector="x in (1, 2)") == ["a", "b"]
    assert await names(label_selector="!x") == ["c"]
    assert await names(label_selector="x,x!=1") == ["b"]
    assert await names(field_selector="metadata.name=c") == ["c"]


async def test_apply_creates_then_changes_nothing_then_removes_what_is_left_out(client: KubeClient) -> None:
    made = await client.apply(config_map(a="1", b="2"), field_manager="t")
    same = await client.apply(config_map(a="1", b="2"), field_manager="t")
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    less = await client.apply(config_map(a="1"), field_manager="t")
    assert less["data"] == {"a": "1"}


async def test_apply_leaves_fields_of_others_alone_and_takes_them_only_by_force(client: KubeClient) -> None:
    await client.create(deployment(replicas=0), field_manager="first")
    applied = await client.apply(deployment(), field_manager="t")
    assert applied["spec"]["replicas"] == 0
    with pytest.raises(Conflict) as refused:
        await client.apply(deployment(replicas=3), field_manager="t", force=False)
    assert refused.value.details["causes"][0]["reason"] == "FieldManagerConflict"
    forced = await client.apply(deployment(replicas=3), field_manager="t")
    assert (forced["spec"]["replicas"], forced["metadata"]["generation"]) == (3, 2)
    dropped = await client.apply(deployment(), field_manager="t")
    assert dropped["spec"]["replicas"] == 1, "a field nobody owns goes back to its default"


async def test_status_is_written_apart_and_does_not_move_the_generation(client: KubeClient) -> None:
    service = {
        "apiVersion": LLM_SERVICES.api_version,
        "kind": "LLMService",
        "metadata": {"name": "m", "namespace": "ns"},
        "spec": {"x": 1},
        "status": {"phase": "Ignored"},
    }
    made = await client.create(service, field_manager="t")
    assert "status" not in made
    reported = await client.update_status({**made, "spec": {"x": 2}, "status": {"phase": "Ready"}})
    assert (reported["spec"], reported["status"]) == ({"x": 1}, {"phase": "Ready"})
    changed = await client.replace({**reported, "spec": {"x": 3}, "status": {}})
    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"phase": "Ready"})


async def test_a_watch_gives_events_of_any_size_in_order_and_a_bookmark_at_its_end(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    start = (await client.list(CONFIGMAPS)).resource_version
    fake_apiserver.put(config_map(big="x" * 3_000_000))
    fake_apiserver.remove(CONFIGMAPS, "ns", "one")
    kinds = [event["type"] async for event in client.watch(CONFIGMAPS, resource_version=start, seconds=1)]
    assert kinds == ["ADDED", "DELETED", "BOOKMARK"]


async def test_a_watch_cut_inside_a_line_is_an_error_and_never_a_half_object(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    start = (await client.list(CONFIGMAPS)).resource_version
    fake_apiserver.faults.cut_watches(CONFIGMAPS)
    fake_apiserver.put(config_map())
    with pytest.raises(ServerUnavailable):
        async for event in client.watch(CONFIGMAPS, resource_version=start):
            pytest.fail(f"an event out of half a line: {event}")


async def test_a_watch_from_a_forgotten_version_is_gone(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    start = (await client.list(CONFIGMAPS)).resource_version
    fake_apiserver.expire_history()
    with pytest.raises(Gone):
        await anext(client.watch(CONFIGMAPS, resource_version=start))


async def test_a_silent_watch_fails_after_the_idle_timeout(client: KubeClient) -> None:
    with pytest.raises(ServerUnavailable, match="no answer in time"):
        await anext(client.watch(PODS, resource_version="1", idle_timeout=0.1))


async def test_leaving_a_watch_closes_its_connection(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    async with aclosing(client.watch(CONFIGMAPS, resource_version="1")) as events:
        fake_apiserver.put(config_map())
        assert (await anext(events))["type"] == "ADDED"


async def test_throttling_says_how_long_to_wait(client: KubeClient, fake_apiserver: FakeApiServer) -> None:
    fake_apiserver.faults.fail(status=429, retry_after=7)
    with pytest.raises(TooManyRequests) as refused:
        await client.get(PODS, "ns", "x")
    assert (refused.value.retry_after, refused.value.transient) == (7.0, True)


async def test_a_hanging_server_is_given_up_on(fake_apiserver: FakeApiServer) -> None:
    client = fake_apiserver.client(request_timeout=0.1)
    fake_apiserver.faults.hang()
    with pytest.raises(ServerUnavailable) as refused:
        await client.get(PODS, "ns", "x")
    assert (refused.value.status, refused.value.reason) == (0, "Timeout")


async def test_a_server_that_is_down_is_unavailable_and_then_works_again(
    client: KubeClient, fake_apiserver: FakeApiServer
) -> None:
    await client.list(PODS)
    fake_apiserver.down()
    with pytest.raises(ServerUnavailable):
        await client.list(PODS)
    fake_apiserver.up()
    await client.list(PODS)


async def test_cancelling_a_request_cancels_it(client: KubeClient, fake_apiserver: FakeApiServer) -> None:
    fake_apiserver.faults.hang()
    task = asyncio.create_task(client.list(PODS))
    await fake_apiserver.asked(verb="list")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_every_request_is_observed_once(fake_apiserver: FakeApiServer) -> None:
    seen: list[RequestDone] = []
    client = fake_apiserver.client(observe=seen.append)
    await client.list(PODS)
    fake_apiserver.faults.drop(verb="create")
    with pytest.raises(ServerUnavailable):
        await client.create(config_map(), field_manager="t")
    with pytest.raises(NotFound):
        await client.delete(DEPLOYMENTS, "ns", "x")
    assert [(done.verb, done.method, str(done.resource), done.status) for done in seen] == [
        ("list", "GET", "pods", 200),
        ("create", "POST", "configmaps", 0),
        ("delete", "DELETE", "deployments.apps", 404),
    ]


async def test_a_refused_token_is_unauthorized(fake_apiserver: FakeApiServer) -> None:
    fake_apiserver.api.tokens = {"good"}
    assert (await fake_apiserver.client(token="good").list(PODS)).items == []
    with pytest.raises(Unauthorized):
        await fake_apiserver.client(token="bad").list(PODS)
