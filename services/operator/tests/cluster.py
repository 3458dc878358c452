"""A cluster in one event loop: the fake API server, the operator, and hands that play users and controllers.

Tests that use it run in virtual time (`pytest.mark.looptime`), so a minute of steady state costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from fake_apiserver import FakeApiServer, Recorded
from noctaya_operator import kinds
from noctaya_operator.defaults import Defaults
from noctaya_operator.kinds import INFERENCE_RUNTIMES, LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Object, owner_reference
from noctaya_operator.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    JOBS,
    PODS,
    Resource,
)
from noctaya_operator.operator import Operator
from noctaya_operator.progress_poller import Unanswered
from prometheus_client import CollectorRegistry
from samples import IMAGES, merged, raw_service

EPOCH = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
NAMESPACE = "team"
SECONDS = "%Y-%m-%dT%H:%M:%SZ"


def raw_runtime(*, name: str = "engine", **spec: Any) -> Object:
    base: Object = {
        "vendor": "nvidia",
        "container": {"image": "example.com/engine:1", "args": ["{{ .Model.Path }}"], "port": {}},
        "accelerator": {"resourceName": "nvidia.com/gpu"},
    }
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": "InferenceRuntime",
        "metadata": {"name": name},
        "spec": merged(base, spec),
    }


class Cluster:
    """Use as `async with Cluster() as cluster`: the operator runs inside."""

    def __init__(
        self,
        *,
        gateways: int = 1,
        namespaces: Sequence[str] | None = None,
        keda: bool = True,
        runtime: bool = True,
    ) -> None:
        self.server = FakeApiServer(kinds.ALL)
        if not keda:
            self.server.withdraw(SCALED_OBJECTS)
        if runtime:
            self.server.put(raw_runtime())
        self.user = self.server.direct_client()
        self.registry = CollectorRegistry()
        self.progress: dict[str, bytes | Callable[[], bytes]] = {}
        """What prewarm agents and gateways answer, by their URL; who is missing does not answer."""
        self.asked: list[str] = []
        self._gateways = gateways
        self._namespaces = namespaces
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def start(self) -> None:
        """A fresh operator process."""
        self.registry = CollectorRegistry()
        operator = Operator(
            self.server.direct_client(),
            defaults=Defaults(images=IMAGES, gateway_replicas=self._gateways),
            registry=self.registry,
            namespaces=self._namespaces,
            now=self.now,
            fetch=self._fetch,
        )
        tasks = [asyncio.create_task(operator.follow()), asyncio.create_task(operator.work())]

        async def end() -> None:
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._stack.push_async_callback(end)

    async def stop(self) -> None:
        """End the operator."""
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    async def restart(self, *, gateways: int | None = None) -> None:
        """End the operator and start another one, maybe with other flags."""
        await self.stop()
        self._gateways = gateways or self._gateways
        self.start()
        await self.settle()

    async def _fetch(self, url: str) -> bytes:
        self.asked.append(url)
        await asyncio.sleep(0.01)
        if url not in self.progress:
            raise Unanswered("nobody there")
        said = self.progress[url]
        return said if isinstance(said, bytes) else said()

    def now(self) -> datetime:
        """Virtual wall clock."""
        return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())

    async def counted(self) -> None:
        """Let the runtimes count their services, which takes its time."""
        await self.settle(11)

    async def settle(self, seconds: float = 5.0) -> None:
        """Let so much virtual time pass."""
        await asyncio.sleep(seconds)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for something to become true of the stored objects; five virtual minutes at most."""
        async with asyncio.timeout(300):
            while not holds():
                await self.server.api.store.changed()

    # Users

    async def service(self, **given: Any) -> Object:
        """Create an LLMService and let the operator work."""
        created = await self.user.create(raw_service(**given), field_manager="user")
        await self.settle()
        return created

    async def change(self, name: str = "chat", **spec: Any) -> None:
        """Change the spec of a service, and let the operator work."""
        await self.user.patch_merge(LLM_SERVICES, NAMESPACE, name, {"spec": spec})
        await self.settle()

    async def change_runtime(self, name: str = "engine", **spec: Any) -> None:
        """Change the spec of a runtime, and let the operator work."""
        await self.user.patch_merge(INFERENCE_RUNTIMES, "", name, {"spec": spec})
        await self.settle()

    # What others do

    async def gateways_answer(self, name: str = "chat", *, ready: bool = True) -> None:
        """The EndpointSlice controller sees the Pods behind the scaler's Service."""
        self.server.put(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": f"{name}-scaler-abc",
                    "namespace": NAMESPACE,
                    "labels": {
                        "kubernetes.io/service-name": f"{name}-scaler",
                        "app.kubernetes.io/managed-by": "noctaya",
                        "serving.noctaya.io/gateway": name,
                    },
                },
                "addressType": "IPv4",
                "ports": [{"name": "grpc", "port": 9090, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": ready}}],
            }
        )
        await self.settle()

    async def idle_service(self, **given: Any) -> Object:
        """A service that is scaled to zero, all its objects made."""
        created = await self.service(**given)
        await self.gateways_answer(created["metadata"]["name"])
        return created

    async def scale(self, replicas: int, *, ready: int = 0, name: str = "chat", conditions: Any = ()) -> None:
        """KEDA scales the backend and the Deployment controller follows."""
        await self.user.patch_merge(
            DEPLOYMENTS, NAMESPACE, name, {"spec": {"replicas": replicas}}, field_manager="keda"
        )
        status: Object = {"replicas": replicas, "conditions": list(conditions)}
        if ready:
            status["readyReplicas"] = ready
        self.server.set_status(DEPLOYMENTS, NAMESPACE, name, status)
        await self.settle()

    async def pod(
        self,
        status: Object,
        *,
        name: str = "chat-abc",
        service: str = "chat",
        runtime: str = "engine",
        labels: dict[str, str] | None = None,
    ) -> None:
        """A Pod of the backend, or of whatever the labels say, as the kubelet reports it."""
        known = self.found(PODS, name)
        created = known["metadata"]["creationTimestamp"] if known else self.now().strftime(SECONDS)
        made = pod(
            status, name=name, service=service, runtime=runtime, labels=labels, creationTimestamp=created
        )
        self.server.put(made)
        await self.settle()

    async def job_is(
        self,
        condition: str,
        *,
        name: str = "chat",
        message: str = "",
        at: datetime | None = None,
        ended: datetime | None = None,
    ) -> None:
        """The prewarm Job ends; `at` is when it began, and unless given otherwise when it ended."""
        entry = {"type": condition, "status": "True", "message": message}
        status: Object = {"conditions": [entry]}
        if at is not None:
            status["startTime"] = at.isoformat()
            entry["lastTransitionTime"] = (ended or at).isoformat()
        self.server.set_status(JOBS, NAMESPACE, f"{name}-prewarm", status)
        await self.settle()

    async def prewarm_pod(
        self, status: Object, *, name: str = "chat-prewarm-x", node: str = "node-1", service: str = "chat"
    ) -> None:
        """A Pod of the prewarm Job, as the kubelet reports it."""
        owner = owner_reference(self.the(JOBS, f"{service}-prewarm"))
        labels = {
            "app.kubernetes.io/managed-by": "noctaya",
            "serving.noctaya.io/llmservice": service,
            "batch.kubernetes.io/job-name": f"{service}-prewarm",
        }
        made = pod(status, name=name, labels=labels, ownerReferences=[owner])
        made["spec"]["nodeName"] = node
        self.server.put(made)
        await self.settle()

    async def gateway_pod(
        self, *, name: str = "chat-gateway-x", service: str = "chat", address: str = ""
    ) -> None:
        """A gateway's Pod."""
        labels = {"app.kubernetes.io/managed-by": "noctaya", "serving.noctaya.io/gateway": service}
        status = running(container="gateway") | ({"phase": "Running", "podIP": address} if address else {})
        await self.pod(status, name=name, labels=labels)

    # What can be seen

    def found(self, resource: Resource, name: str) -> Object | None:
        return self.server.find(resource, NAMESPACE, name)

    def the(self, resource: Resource, name: str) -> Object:
        found = self.found(resource, name)
        assert found is not None, f"no {resource} {name}"
        return found

    def the_deployment(self, name: str = "chat") -> Object:
        return self.the(DEPLOYMENTS, name)

    def status(self, name: str = "chat") -> Object:
        found: Object = self.the(LLM_SERVICES, name).get("status") or {}
        return found

    def condition(self, kind: str, name: str = "chat") -> tuple[str, str]:
        """Status and reason of a condition."""
        for condition in self.status(name).get("conditions", ()):
            if condition["type"] == kind:
                return condition["status"], condition["reason"]
        return "", ""

    def message(self, kind: str, name: str = "chat") -> str:
        return next(
            str(each["message"]) for each in self.status(name).get("conditions", ()) if each["type"] == kind
        )

    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason, action of every Event, in order."""
        found = sorted(self.server.all(EVENTS, NAMESPACE), key=lambda each: each["metadata"]["name"])
        return [(each["type"], each["reason"], each["action"]) for each in found]

    def forget_requests(self) -> None:
        self.server.requests.clear()

    def writes(self) -> list[Recorded]:
        return self.server.writes()

    def names_of(self, resource: Resource) -> list[str]:
        return [each["metadata"]["name"] for each in self.server.all(resource, NAMESPACE)]


def pod(
    status: Object,
    *,
    name: str = "chat-abc",
    service: str = "chat",
    runtime: str = "engine",
    labels: dict[str, str] | None = None,
    **metadata: Any,
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels
            or {
                "app.kubernetes.io/name": service,
                "app.kubernetes.io/managed-by": "noctaya",
                "serving.noctaya.io/llmservice": service,
                "serving.noctaya.io/runtime": runtime,
            },
            **metadata,
        },
        "spec": {"containers": [{"name": "serving", "image": "example.com/engine:1"}]},
        "status": status,
    }


def waiting(reason: str, *, message: str = "", container: str = "serving", **more: Any) -> Object:
    """Status of a Pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": container, "state": state, "ready": False, **more}]}


def running(*, ready: bool = False, container: str = "serving", **more: Any) -> Object:
    """Status of a Pod whose container runs."""
    state = {"running": {"startedAt": "2026-11-30T08:01:00Z"}}
    status: Object = {
        "containerStatuses": [{"name": container, "state": state, "ready": ready, "restartCount": 0, **more}]
    }
    if ready:
        status["conditions"] = [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T08:02:00Z"}
        ]
    return status


__all__ = ["ENDPOINT_SLICES", "PODS", "Cluster", "pod", "raw_runtime", "running", "waiting"]
