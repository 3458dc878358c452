"""O1 to O3: one object can't hurt another, nothing foreign is adopted, deletion ends."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster, pod, raw_runtime
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.resources import DEPLOYMENTS, PVCS, SERVICES
from samples import raw_service

pytestmark = pytest.mark.looptime


async def test_o1_a_service_that_can_not_be_parsed_is_told_and_the_others_go_on() -> None:
    async with Cluster() as cluster:
        broken = raw_service(name="broken", scaling={"activationTimeout": "soon", "max": "many"})
        cluster.server.put(broken)
        await cluster.idle_service()
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.condition("Ready", "broken") == ("False", "InvalidSpec")
        assert "spec.scaling.activationTimeout" in cluster.message("Ready", "broken")
        assert cluster.names_of(DEPLOYMENTS) == ["chat", "chat-gateway"]
        await cluster.change("broken", scaling={"activationTimeout": "5m", "max": 1})
        assert cluster.condition("Degraded", "broken") == ("False", "Progressing")


async def test_o1_a_runtime_that_can_not_be_parsed_is_told_and_the_others_go_on() -> None:
    async with Cluster() as cluster:
        odd = raw_runtime(name="odd")
        odd["spec"]["container"]["port"] = {"containerPort": "many"}
        cluster.server.put(odd)
        await cluster.idle_service()
        await cluster.service(name="pinned", runtime={"name": "odd"})
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.condition("Ready", "pinned") == ("False", "RuntimeResolution")
        assert "spec.container.port.containerPort" in cluster.message("Ready", "pinned")


async def test_o1_an_object_of_a_service_that_makes_no_sense_hurts_nobody() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(name="other")
        nonsense = pod({}, name="odd", service="other")
        nonsense["status"] = {"conditions": "none", "containerStatuses": [None, 3], "phase": 7}
        nonsense["spec"] = None
        cluster.server.put(nonsense)
        await cluster.idle_service()
        assert cluster.status()["phase"] == "ScaledToZero"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (DEPLOYMENTS, "chat"),
        (DEPLOYMENTS, "chat-gateway"),
        (SERVICES, "chat"),
        (SERVICES, "chat-pods"),
        (PVCS, "chat-cache"),
        (SCALED_OBJECTS, "chat"),
    ],
)
async def test_o2_a_foreign_object_is_refused_before_anything_is_written(kind: object, name: str) -> None:
    async with Cluster() as cluster:
        resource = next(each for each in cluster.server.resources if each == kind)
        foreign = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"made": "by hand"},
        }
        before = cluster.server.put(foreign)
        await cluster.service()
        assert cluster.condition("Ready") == ("False", "NameConflict")
        assert f"{resource.kind} team/{name}" in cluster.message("Ready")
        written = {(each.verb, each.resource, each.subresource) for each in cluster.writes()}
        assert written <= {("create", LLM_SERVICES, ""), ("update", LLM_SERVICES, "status")} | {
            (each.verb, each.resource, each.subresource)
            for each in cluster.writes()
            if each.resource.kind == "InferenceRuntime"
        }
        assert cluster.the(resource, name) == before


async def test_o2_services_whose_names_collide_are_never_mixed() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.service(name="chat-gateway")
        assert cluster.condition("Ready", "chat-gateway") == ("False", "NameConflict")
        assert "is controlled by LLMService chat" in cluster.message("Ready", "chat-gateway")
        assert cluster.status()["phase"] == "ScaledToZero"
        await cluster.user.delete(LLM_SERVICES, NAMESPACE, "chat")
        cluster.server.collect_garbage()
        await cluster.settle()
        assert cluster.condition("Degraded", "chat-gateway") == ("False", "Progressing")


async def test_o2_objects_of_a_deleted_service_of_the_same_name_are_waited_for() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.user.delete(LLM_SERVICES, NAMESPACE, "chat")
        await cluster.service()
        assert cluster.condition("Ready") == ("False", "NameConflict")
        cluster.server.collect_garbage()
        await cluster.settle()
        assert cluster.status()["phase"] == "ScaledToZero"


async def test_o3_a_service_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.user.delete(LLM_SERVICES, NAMESPACE, "chat", propagation="Foreground")
        await cluster.settle()
        cluster.forget_requests()
        await cluster.user.delete(SERVICES, NAMESPACE, "chat-pods")
        await cluster.settle(60)
        assert [each.resource for each in cluster.writes()] == [SERVICES]
        cluster.server.collect_garbage()
        assert cluster.names_of(LLM_SERVICES) == []
        assert cluster.names_of(DEPLOYMENTS) == []


async def test_o3_a_namespace_that_goes_away_is_not_fought() -> None:
    async with Cluster() as cluster:
        cluster.server.terminating_namespaces.add(NAMESPACE)
        cluster.server.put(raw_service())
        await cluster.settle(60)
        assert len(cluster.writes()) <= 2
        assert cluster.status() == {}


async def test_o3_a_retained_claim_outlives_its_service() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service(cache={"retain": True})
        await cluster.user.delete(LLM_SERVICES, NAMESPACE, "chat")
        cluster.server.collect_garbage()
        assert cluster.names_of(DEPLOYMENTS) == []
        kept = cluster.the(PVCS, "chat-cache")
        await cluster.service(cache={"retain": True})
        assert cluster.the(PVCS, "chat-cache")["metadata"]["uid"] == kept["metadata"]["uid"]
        assert cluster.status()["phase"] == "ScaledToZero"
