"""When services are as they should be, seen through watches like any client of the API would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from .api import Api, Object
from .population import NOCTAYA, OTHER_RUNTIME, Member

SERVICES = f"{NOCTAYA}/llmservices"
DEPLOYMENTS = "/apis/apps/v1/deployments"
RUNTIME_LABEL = "serving.noctaya.io/runtime"


@asynccontextmanager
async def expecting(
    api: Api, collection: str, arrived: Callable[[Object], bool], *, count: int, **query: str
) -> AsyncIterator[asyncio.Task[float]]:
    """A task that ends, with the monotonic time, once `count` objects have arrived where they should be."""
    task = asyncio.create_task(_arrivals(api, collection, arrived, count, query))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _arrivals(
    api: Api, collection: str, arrived: Callable[[Object], bool], count: int, query: dict[str, str]
) -> float:
    there: set[str] = set()
    async for event in api.watch(collection, **query):
        obj = event["object"]
        if event["type"] != "DELETED" and arrived(obj):
            there.add(obj["metadata"]["uid"])
            if len(there) == count:
                return time.monotonic()
    raise RuntimeError(f"the watch of {collection} ended with {len(there)} of {count}")


def converged(service: Object) -> bool:
    """Everything is made, the scaler answers, KEDA is attached, nobody asks for anything."""
    status = service.get("status") or {}
    if status.get("observedGeneration") != service["metadata"]["generation"]:
        return False
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
    return status.get("phase") == "ScaledToZero" and conditions.get("AutoscalingReady") == "True"


def runs_image(image: str) -> Callable[[Object], bool]:
    """Whether a backend's Deployment has the image."""

    def has(deployment: Object) -> bool:
        containers = deployment["spec"]["template"]["spec"]["containers"]
        return any(container["image"] == image for container in containers)

    return has


class ReconcileProbe:
    """Changes one service again and again; measures how long the change takes to reach its ScaledObject."""

    def __init__(self, api: Api, member: Member) -> None:
        if member.runtime != OTHER_RUNTIME:
            raise ValueError(f"{member.name} is not unrelated to the runtime that changes")
        self._api = api
        self._member = member
        self._target = 10
        self._seen = asyncio.Condition()
        self._stored = 0
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> ReconcileProbe:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def once(self) -> float:
        """Seconds from the answer to the change until a watch shows its effect."""
        self._target += 1
        await self._api.merge(self._member.path, {"spec": {"scaling": {"target": self._target}}})
        begun = time.monotonic()
        async with asyncio.timeout(60), self._seen:
            await self._seen.wait_for(lambda: self._stored == self._target)
        return time.monotonic() - begun

    async def _watch(self) -> None:
        path = f"/apis/keda.sh/v1alpha1/namespaces/{self._member.namespace}/scaledobjects"
        only = f"metadata.name={self._member.name}"
        async for event in self._api.watch(path, fieldSelector=only):
            (trigger,) = event["object"]["spec"]["triggers"]
            async with self._seen:
                self._stored = int(trigger["metadata"]["targetValue"])
                self._seen.notify_all()
