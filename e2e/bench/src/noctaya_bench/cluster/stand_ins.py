"""Who is missing in a cluster without nodes: a scheduler and kubelet for gateways, and KEDA.

Deployments, Pods and EndpointSlices are made by Kubernetes' own controllers. These two do what makes the
operator go on: gateways become ready, and ScaledObjects get conditions and a HorizontalPodAutoscaler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from .api import Api, Object

NODE = "stand-in"
AT_ONCE = 8
GATEWAY_LABEL = "serving.noctaya.io/gateway"
SCALED_OBJECT_LABEL = "scaledobject.keda.sh/name"
PODS = "/api/v1/pods"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"

Act = Callable[[Api, Object, int], Awaitable[None]]


@asynccontextmanager
async def stand_ins(api: Api) -> AsyncIterator[None]:
    """Both at work until the context ends; a failure of theirs ends it too."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    await api.create("/api/v1/nodes", node)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_answer(api, PODS, run_pod, labelSelector=GATEWAY_LABEL)),
            group.create_task(_answer(api, SCALED_OBJECTS, attach)),
        ]
        yield
        for task in tasks:
            task.cancel()


async def _answer(api: Api, collection: str, act: Act, **query: str) -> None:
    """`act` once on each new object, a few at a time, in the order they came."""
    queue: asyncio.Queue[tuple[int, Object]] = asyncio.Queue()

    async def work() -> None:
        while True:
            number, obj = await queue.get()
            await act(api, obj, number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
        number = 0
        async for event in api.watch(collection, **query):
            if event["type"] == "ADDED":
                number += 1
                queue.put_nowait((number, event["object"]))


async def run_pod(api: Api, pod: Object, number: int) -> None:
    """What scheduler and kubelet say of a Pod that runs."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}}
    await api.create(f"{path}/binding", {**binding, "target": target})
    await api.merge(f"{path}/status", {"status": running(pod, number)})


def running(pod: Object, number: int) -> Object:
    """The status of a Pod whose containers are all ready."""
    now = _now()
    address = f"10.{128 + number // 65536}.{number // 256 % 256}.{number % 256}"
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


async def attach(api: Api, scaled_object: Object, number: int) -> None:
    """What KEDA does with a new ScaledObject of a service without demand."""
    del number
    metadata = scaled_object["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    hpa = autoscaler(scaled_object)
    collection = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    await api.create(collection, hpa)
    status = {"hpaName": hpa["metadata"]["name"], "conditions": keda_conditions()}
    path = f"/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects/{name}/status"
    await api.merge(path, {"status": status})


def keda_conditions() -> list[Object]:
    """Of a ScaledObject that works and has nothing to do."""
    said = {"Ready": "True", "Active": "False", "Fallback": "False", "Paused": "Unknown"}
    return [
        {"type": kind, "status": status, "reason": "StandIn", "message": "by the bench"}
        for kind, status in said.items()
    ]


def autoscaler(scaled_object: Object) -> Object:
    """The HorizontalPodAutoscaler KEDA would make."""
    metadata, spec = scaled_object["metadata"], scaled_object["spec"]
    owner = {
        "apiVersion": scaled_object["apiVersion"],
        "kind": scaled_object["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    metric = {"name": "s0-pending", "selector": {"matchLabels": {SCALED_OBJECT_LABEL: metadata["name"]}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": f"keda-hpa-{metadata['name']}",
            "labels": {
                SCALED_OBJECT_LABEL: metadata["name"],
                "app.kubernetes.io/managed-by": "keda-operator",
            },
            "ownerReferences": [owner],
        },
        "spec": {
            "minReplicas": 1,
            "maxReplicas": spec.get("maxReplicaCount", 1),
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": spec["scaleTargetRef"]["name"],
            },
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "10"}},
                }
            ],
        },
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
