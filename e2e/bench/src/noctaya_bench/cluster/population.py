"""Who the operator has to care for: services over some namespaces, half of them on each of two runtimes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from .api import Api, Object

NAMESPACES = 10
CHANGED_RUNTIME, OTHER_RUNTIME = "engine-changed", "engine-other"
CREATORS = 8
NOCTAYA = "/apis/serving.noctaya.io/v1alpha1"
API_VERSION = "serving.noctaya.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class Member:
    """One service."""

    namespace: str
    name: str
    runtime: str

    @property
    def path(self) -> str:
        """Its URL path."""
        return f"{NOCTAYA}/namespaces/{self.namespace}/llmservices/{self.name}"


def members(count: int) -> list[Member]:
    """`count` services; every second one is on the runtime that will change."""
    return [
        Member(
            namespace=f"team-{number % NAMESPACES}",
            name=f"model-{number:04d}",
            runtime=(CHANGED_RUNTIME, OTHER_RUNTIME)[number // NAMESPACES % 2],
        )
        for number in range(count)
    ]


def runtime(name: str, *, image: str = "example.com/vllm:1") -> Object:
    """A runtime with everything that runtimes usually have."""
    health = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 10}
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceRuntime",
        "metadata": {"name": name},
        "spec": {
            "family": "vllm",
            "vendor": "nvidia",
            "container": {
                "image": image,
                "args": [
                    "{{ .Model.Path }}",
                    "--served-model-name={{ .Service.Name }}",
                    "--port=8000",
                ],
                "env": [{"name": "VLLM_LOGGING_LEVEL", "value": "INFO"}],
                "port": {"containerPort": 8000},
            },
            "accelerator": {
                "resourceName": "nvidia.com/gpu",
                "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A10"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            },
            "health": {
                "startup": {**health, "failureThreshold": 120},
                "readiness": health,
                "liveness": {**health, "failureThreshold": 6},
            },
            "lifecycle": {"terminationGracePeriodSeconds": 120, "preStopDrain": True},
        },
    }


def service(member: Member) -> Object:
    """A service as its owner would write it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "LLMService",
        "metadata": {"name": member.name, "namespace": member.namespace, "labels": {"team": "bench"}},
        "spec": {
            "model": {"source": {"uri": f"hf://bench/{member.name}"}},
            "runtime": {"name": member.runtime},
            "resources": {"accelerators": 1, "cpu": "8", "memory": "32Gi"},
            "scaling": {"max": 1, "target": 10},
            "cache": {"size": "30Gi"},
        },
    }


async def create_runtimes_and_namespaces(api: Api) -> None:
    """What services need before they come."""
    for number in range(NAMESPACES):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
        await api.create("/api/v1/namespaces", body)
    for name in (CHANGED_RUNTIME, OTHER_RUNTIME):
        await api.create(f"{NOCTAYA}/inferenceruntimes", runtime(name))


async def create_services(api: Api, wanted: Iterable[Member]) -> None:
    """All services, as fast as a few clients can."""

    async def create(member: Member) -> None:
        await api.create(f"{NOCTAYA}/namespaces/{member.namespace}/llmservices", service(member))

    await each_of(wanted, create, at_once=CREATORS)


async def each_of(
    wanted: Iterable[Member], act: Callable[[Member], Awaitable[None]], *, at_once: int
) -> None:
    """`act` on every member, `at_once` at a time; the first failure ends it."""
    waiting = iter(list(wanted))

    async def work() -> None:
        for member in waiting:
            await act(member)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
