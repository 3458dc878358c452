"""Who is queued for what, and that nobody starves."""

from __future__ import annotations

import asyncio

import pytest
from cluster import NAMESPACE, Cluster, raw_runtime
from noctaya_operator.kinds import INFERENCE_RUNTIMES, LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import DEPLOYMENTS, HPAS
from samples import raw_service

pytestmark = pytest.mark.looptime


async def test_a_runtime_of_many_services_does_not_starve_another_service() -> None:
    async with Cluster() as cluster:
        cluster.server.put(raw_runtime(name="other"))
        for number in range(40):
            cluster.server.put(raw_service(name=f"s{number}"))
        await cluster.service(name="alone", runtime={"name": "other"})
        await cluster.settle(60)
        # From now on every write takes a while, so that the work queues.
        cluster.server.faults.delay(0.2, verb="patch", resource=DEPLOYMENTS, times=10_000)
        cluster.forget_requests()
        await cluster.user.patch_merge(
            INFERENCE_RUNTIMES, "", "engine", {"spec": {"container": {"image": "example.com/engine:2"}}}
        )
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        await cluster.user.patch_merge(
            LLM_SERVICES, NAMESPACE, "alone", {"spec": {"endpoint": {"maxQueue": 7}}}
        )
        await cluster.server.asked(verb="patch", name="alone-gateway")
        assert asyncio.get_running_loop().time() - began < 1.0
        rolled = [each for each in cluster.writes() if each.resource == DEPLOYMENTS and each.name[0] == "s"]
        assert len(rolled) < 30
        await cluster.settle(60)
        images = {
            each["spec"]["template"]["spec"]["containers"][0]["image"]
            for each in cluster.server.all(DEPLOYMENTS, NAMESPACE)
            if each["metadata"]["name"] in {f"s{number}" for number in range(40)}
        }
        assert images == {"example.com/engine:2"}


def passes(cluster: Cluster) -> float:
    return sum(
        cluster.registry.get_sample_value(
            "controller_runtime_reconcile_total", {"controller": "llmservice", "result": result}
        )
        or 0.0
        for result in ("success", "requeue_after", "error")
    )


async def test_what_means_nothing_wakes_nobody() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        hpa: Object = {
            "apiVersion": HPAS.api_version,
            "kind": HPAS.kind,
            "metadata": {
                "name": "keda-hpa-chat",
                "namespace": NAMESPACE,
                "labels": {"scaledobject.keda.sh/name": "chat"},
            },
            "spec": {"metrics": [{"type": "External"}]},
            "status": {"currentReplicas": 1},
        }
        cluster.server.put(hpa)
        cluster.server.set_status(SCALED_OBJECTS, NAMESPACE, "chat", {"lastActiveTime": "0"})
        await cluster.settle()
        before = passes(cluster)
        for number in range(20):
            cluster.server.put({**hpa, "status": {"currentReplicas": number}})
            cluster.server.set_status(SCALED_OBJECTS, NAMESPACE, "chat", {"lastActiveTime": str(number)})
            await cluster.settle(1)
        assert passes(cluster) == before


async def test_a_burst_of_changes_is_one_pass() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        before = passes(cluster)
        for number in range(10):
            cluster.server.set_status(DEPLOYMENTS, NAMESPACE, "chat", {"replicas": number})
        await cluster.settle()
        assert passes(cluster) - before <= 2


async def test_only_the_given_namespaces_are_worked_in() -> None:
    async with Cluster(namespaces=["team"]) as cluster:
        cluster.server.put(raw_service(namespace="elsewhere"))
        await cluster.idle_service()
        assert cluster.status()["phase"] == "ScaledToZero"
        assert cluster.server.all(DEPLOYMENTS, "elsewhere") == []


async def test_a_change_at_a_start_does_not_wait_behind_all_services() -> None:
    async with Cluster() as cluster:
        for number in range(40):
            cluster.server.put(raw_service(name=f"s{number:02}"))
        await cluster.settle(60)
        cluster.server.faults.delay(0.2, verb="patch", resource=DEPLOYMENTS, times=10_000)
        # The operator starts anew and finds every backend outdated.
        runtime = raw_runtime(container={"image": "example.com/engine:2"})
        runtime["metadata"]["generation"] = 2
        await cluster.stop()
        cluster.server.put(runtime)
        cluster.start()
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        await cluster.user.patch_merge(LLM_SERVICES, NAMESPACE, "s39", {"spec": {"resources": {"cpu": "7"}}})

        def done() -> bool:
            return "7" in str(cluster.the(DEPLOYMENTS, "s39")["spec"]["template"]["spec"]["containers"])

        await cluster.until(done)
        assert asyncio.get_running_loop().time() - began < 1.5
