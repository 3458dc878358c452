"""G9: gateways are told when an activation can't succeed, after a while, and no longer than it is so."""

from __future__ import annotations

import pytest
from cluster import NAMESPACE, Cluster, running, waiting
from noctaya_operator.kube.objects import Object
from noctaya_operator.kube.resources import PODS

pytestmark = pytest.mark.looptime

ANNOTATION = "serving.noctaya.io/activation-failure"
GATEWAY = {"app.kubernetes.io/managed-by": "noctaya", "serving.noctaya.io/gateway": "chat"}


def told(cluster: Cluster) -> str | None:
    metadata = cluster.the(PODS, "chat-gateway-x")["metadata"]
    found: Object = metadata.get("annotations") or {}
    return found.get(ANNOTATION)


async def test_g9_a_lasting_failure_is_told_and_taken_back() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.pod(running(container="gateway", ready=True), name="chat-gateway-x", labels=GATEWAY)
        await cluster.scale(1)
        await cluster.pod(waiting("ErrImagePull", message="not found"))
        assert told(cluster) is None
        await cluster.settle(45)
        assert told(cluster) is None
        await cluster.settle(20)
        assert "can't be pulled: it does not exist" in str(told(cluster))
        cluster.forget_requests()
        await cluster.settle(600)
        assert cluster.writes() == []
        await cluster.pod(running(ready=True))
        await cluster.scale(1, ready=1)
        assert told(cluster) is None


async def test_g9_a_repair_within_a_minute_costs_no_request() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.pod(running(container="gateway", ready=True), name="chat-gateway-x", labels=GATEWAY)
        await cluster.scale(1)
        await cluster.pod(waiting("ErrImagePull"))
        await cluster.settle(30)
        await cluster.pod(running())
        await cluster.settle(120)
        assert told(cluster) is None


async def test_g9_the_failure_goes_with_the_backend() -> None:
    async with Cluster() as cluster:
        await cluster.idle_service()
        await cluster.pod(running(container="gateway", ready=True), name="chat-gateway-x", labels=GATEWAY)
        await cluster.scale(1)
        await cluster.pod(waiting("CrashLoopBackOff"))
        await cluster.settle(90)
        assert told(cluster) is not None
        cluster.server.remove(PODS, NAMESPACE, "chat-abc")
        await cluster.scale(0)
        assert told(cluster) is None
        assert cluster.status()["phase"] == "ScaledToZero"
