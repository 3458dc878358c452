"""Large lists: what is not kept of a page is gone before the next one comes."""

from __future__ import annotations

from typing import Any

from fake_apiserver import FakeApiServer
from noctaya_operator import kinds
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import CONFIGMAPS


def config_map(number: int) -> dict[str, Any]:
    metadata = {"name": f"cm-{number}", "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"large": "x" * 100}}


def server_with_config_maps() -> FakeApiServer:
    server = FakeApiServer(kinds.ALL)
    for number in range(5):
        server.put(config_map(number))
    return server


async def test_objects_are_pruned_before_the_next_page_is_asked_for() -> None:
    server = server_with_config_maps()
    pages_asked_for = []

    def keep(obj: Object) -> Object:
        pages_asked_for.append(len([each for each in server.requests if each.verb == "list"]))
        return {"metadata": obj["metadata"]}

    page = await server.direct_client().list_all(CONFIGMAPS, page_size=2, keep=keep)
    assert pages_asked_for == [1, 1, 2, 2, 3]
    assert [list(item) for item in page.items] == [["metadata"]] * 5


async def test_objects_that_are_not_kept_are_left_out() -> None:
    def keep(obj: Object) -> Object | None:
        return obj if obj["metadata"]["name"] != "cm-1" else None

    page = await server_with_config_maps().direct_client().list_all(CONFIGMAPS, page_size=2, keep=keep)
    assert [item["metadata"]["name"] for item in page.items] == ["cm-0", "cm-2", "cm-3", "cm-4"]


async def test_a_list_in_one_piece_after_a_forgotten_page_has_each_object_once_and_pruned() -> None:
    server = server_with_config_maps()
    kept: list[str] = []

    def keep(obj: Object) -> Object:
        if not kept:
            server.faults.fail(status=410, reason="Expired", verb="list")
        kept.append(obj["metadata"]["name"])
        return {"metadata": obj["metadata"]}

    page = await server.direct_client().list_all(CONFIGMAPS, page_size=2, keep=keep)
    assert [item["metadata"]["name"] for item in page.items] == [f"cm-{number}" for number in range(5)]
    assert all("data" not in item for item in page.items)
