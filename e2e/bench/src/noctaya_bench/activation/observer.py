"""Who sees what happens: watches of Deployments, Pods and Events of a namespace, a client of its scaler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from noctaya_api import names
from noctaya_api.externalscaler.client import ExternalScalerClient

from ..cluster.api import Api
from .moments import PodStart

Object = dict[str, Any]
T = TypeVar("T")

DEPLOYMENTS, PODS, EVENTS, SLICES = "deployments", "pods", "events", "endpointslices"
PATHS: Final = {
    DEPLOYMENTS: "/apis/apps/v1/namespaces/{}/deployments",
    PODS: "/api/v1/namespaces/{}/pods",
    EVENTS: "/api/v1/namespaces/{}/events",
    SLICES: "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
}
PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Sighting:
    """An object as it was when the news of it came; `at` is time.monotonic()."""

    at: float
    kind: str
    gone: bool
    object: Object


class Observer:
    """Remembers every sighting in a namespace, and when the scaler said that the service is active."""

    def __init__(self) -> None:
        self._sightings: list[Sighting] = []
        self._active: list[tuple[float, bool]] = []
        self._news = asyncio.Condition()

    async def pod_start(self, deployment: str, *, after: float) -> PodStart:
        """The first start of a Pod of a Deployment that was asked for after a moment. Raises TimeoutError."""
        written = await self.first(DEPLOYMENTS, lambda each: _asks(each, deployment), after=after)

        def scheduled(each: Sighting) -> bool:
            return _belongs(each, deployment) and bool(each.object["spec"].get("nodeName"))

        placed = await self.first(PODS, scheduled, after=after)
        pod = placed.object["metadata"]["name"]
        started = await self.first(EVENTS, lambda each: _started(each, pod), after=after)
        ready = await self.first(PODS, lambda each: _name(each) == pod and is_ready(each.object), after=after)
        return PodStart(written=written.at, scheduled=placed.at, started=started.at, ready=ready.at)

    async def listed(self, service: str, *, after: float) -> float:
        """When a Service of this name had a ready endpoint for the first time after a moment."""

        def lists(each: Sighting) -> bool:
            labels = each.object["metadata"].get("labels") or {}
            endpoints = each.object.get("endpoints") or []
            ready = any((one.get("conditions") or {}).get("ready") for one in endpoints)
            return ready and labels.get("kubernetes.io/service-name") == service

        return (await self.first(SLICES, lists, after=after)).at

    async def told(self, *, after: float) -> float:
        """When the scaler said `active` for the first time after a moment."""

        def look() -> float | None:
            return next((at for at, active in self._active if active and at > after), None)

        return await self._until(look, what="the scaler's word")

    async def gone(self, deployment: str, *, after: float) -> None:
        """Return when a Pod of the Deployment has gone after a moment."""
        await self.first(PODS, lambda each: each.gone and _belongs(each, deployment), after=after, gone=True)

    async def first(
        self, kind: str, holds: Callable[[Sighting], bool], *, after: float, gone: bool = False
    ) -> Sighting:
        """The first sighting after a moment of which this holds. Raises TimeoutError."""

        def look() -> Sighting | None:
            return next(
                (
                    each
                    for each in self._sightings
                    if each.at > after and each.kind == kind and each.gone == gone and holds(each)
                ),
                None,
            )

        return await self._until(look, what=kind)

    def forget(self) -> None:
        """What has been seen so far matters no more."""
        self._sightings.clear()
        self._active.clear()

    async def saw(self, sighting: Sighting) -> None:
        """There is news of an object."""
        async with self._news:
            self._sightings.append(sighting)
            self._news.notify_all()

    async def heard(self, *, active: bool) -> None:
        """There is news of the scaler."""
        at = time.monotonic()
        async with self._news:
            self._active.append((at, active))
            self._news.notify_all()

    async def _until(self, look: Callable[[], T | None], *, what: str) -> T:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._news:
                while (found := look()) is None:
                    await self._news.wait()
                return found
        except TimeoutError as error:
            raise TimeoutError(f"{what}: it was not seen within {PATIENCE_SECONDS:g} s") from error


@asynccontextmanager
async def observing(api: Api, namespace: str, *, service: str, scaler: str) -> AsyncIterator[Observer]:
    """An observer at work; `scaler` is the address of the service's ExternalScaler."""
    observer = Observer()
    client = ExternalScalerClient(
        scaler, metadata={"metricName": "pending", "targetValue": "1"}, name=service, namespace=namespace
    )
    async with client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(_watch(observer, api, kind, namespace)) for kind in PATHS]
        tasks.append(group.create_task(_listen(observer, client)))
        try:
            yield observer
        finally:
            for task in tasks:
                task.cancel()


async def _watch(observer: Observer, api: Api, kind: str, namespace: str) -> None:
    async for event in api.watch(PATHS[kind].format(namespace)):
        at = time.monotonic()
        await observer.saw(Sighting(at, kind, event["type"] == "DELETED", event["object"]))
    raise RuntimeError(f"the watch of {kind} ended")


async def _listen(observer: Observer, client: ExternalScalerClient) -> None:
    async for active in client.stream_is_active():
        await observer.heard(active=active)
    raise RuntimeError("the scaler ended its stream")


def is_ready(pod: Object) -> bool:
    """Whether a Pod is Ready and stays."""
    conditions = pod.get("status", {}).get("conditions") or []
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _name(sighting: Sighting) -> str:
    return str(sighting.object["metadata"]["name"])


def _asks(sighting: Sighting, deployment: str) -> bool:
    return _name(sighting) == deployment and bool(sighting.object["spec"].get("replicas"))


def _belongs(sighting: Sighting, deployment: str) -> bool:
    labels = sighting.object["metadata"].get("labels") or {}
    return bool(labels.get(names.LABEL_NAME) == deployment)


def _started(sighting: Sighting, pod: str) -> bool:
    event = sighting.object
    about = event.get("involvedObject") or {}
    return event.get("reason") == "Started" and about.get("name") == pod
