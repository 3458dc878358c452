"""One namespace with what a scenario does in it: services, their parts, their clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from noctaya_api import names
from noctaya_apiserver import ApiClient
from noctaya_apiserver.world import World

from noctaya_scenarios import manifests
from noctaya_scenarios.chat import Client
from noctaya_scenarios.evidence import account, log_of
from noctaya_scenarios.reach import Reach
from noctaya_scenarios.samples import sample
from noctaya_scenarios.waiting import until

Object = dict[str, Any]
T = TypeVar("T")

READY_SECONDS: Final = 180.0
"""For a new service to be wholly there; 15 s on an idle machine."""
REACH_SECONDS: Final = 90.0
WAKE_SECONDS: Final = 150.0
ZERO_SECONDS: Final = 120.0
"""E8: back to zero within two minutes."""


class Scene(World):
    """A namespace of the cluster, and the InferenceRuntimes that belong to it."""

    def __init__(self, api: ApiClient, namespace: str, *, reach: Reach, gateways: int) -> None:
        super().__init__(api, namespace)
        self.gateways = gateways
        self._reach = reach
        self._runtimes: set[str] = set()

    def runtime(self, name: str = "stub", *, image: str = manifests.STUB_IMAGE, **given: Any) -> str:
        """Make or change a runtime of this namespace's own; returns its full name."""
        full = f"{self.namespace}-{name}"
        self._runtimes.add(full)
        self.api.apply(manifests.stub_runtime(full, image=image, **given))
        return full

    def deploy(self, name: str = "chat", *, runtime: str = "", **changes: Any) -> Client:
        """Make a service that runs the stub, wait until it is idle at zero; a client of its endpoint."""
        spec = manifests.service_spec(runtime or self.runtime(), **changes)
        self.create(name, **spec)
        self.await_idle(name)
        return self.client(name)

    def client(self, name: str = "chat") -> Client:
        """A client of a service's endpoint."""
        return Client(*self._reach.endpoint(self.namespace, name))

    def scaler_address(self, name: str = "chat") -> tuple[str, int]:
        """Where KEDA asks for demand."""
        return self._reach.endpoint(self.namespace, f"{name}-scaler", port=names.SCALER_GRPC_PORT)

    def await_idle(self, name: str = "chat", *, within: float = READY_SECONDS) -> None:
        """Wait until a service with min 0 is whole and at zero: gateways, scaler, KEDA, no backend Pod."""
        self.await_phase("ScaledToZero", name, within=within)
        self.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name, within=within)
        self.until(
            lambda: len(self.ready_pods("gateway", name)) == self.gateways,
            within=within,
            what=f"{self.gateways} gateways of {name} ready",
        )
        self.until(
            lambda: holds(self.scaled_object(name)["status"], "Ready"),
            within=within,
            what=f"KEDA takes the ScaledObject {name}",
        )
        self.until(lambda: self.streams(name) >= 1, within=within, what=f"KEDA listens to {name}")
        self.await_reach(name)
        assert self.replicas(name) == 0

    def await_reach(self, name: str = "chat") -> None:
        """Wait until an endpoint can be connected to.

        Nodes learn of gateways that come and go a moment later, on a busy machine after seconds.
        """
        client = self.client(name)
        self.until(lambda: reaches(client), within=REACH_SECONDS, what=f"the nodes know the way to {name}")

    def await_zero(self, name: str = "chat", *, within: float = ZERO_SECONDS) -> None:
        """Wait until no backend Pod is left and the status says so."""
        self.until(
            lambda: self.replicas(name) == 0 and not self.pods("backend", name),
            within=within,
            what=f"{name} back at zero",
        )
        self.await_phase("ScaledToZero", name, within=within)

    def until(self, look: Callable[[], T], *, within: float, what: str) -> T:
        """The first true value; the failure tells what the namespace looks like."""
        return until(look, within=within, what=what, seen=partial(account, self.api, self.namespace))

    def await_status(
        self, holds: Callable[[Object], bool], name: str = "chat", *, within: float = READY_SECONDS
    ) -> Object:
        """Wait until the status of the newest generation is as wanted."""
        found: Object = {}

        def look() -> bool:
            found.clear()
            found.update(self.api.get(self.path(name)))
            status = found.get("status") or {}
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            return current and holds(status)

        self.until(look, within=within, what=f"the wanted status of {name}")
        status: Object = found["status"]
        return status

    def await_condition(
        self, kind: str, status: str, reason: str, name: str = "chat", *, within: float = READY_SECONDS
    ) -> Object:
        """Wait for a condition; returns the whole status."""
        return super().await_condition(kind, status, reason, name, within=within)

    def await_phase(self, phase: str, name: str = "chat", *, within: float = READY_SECONDS) -> Object:
        """Wait for a phase; returns the whole status."""
        return super().await_phase(phase, name, within=within)

    def await_event(self, reason: str, name: str = "chat") -> None:
        """Wait for an Event; they are written after what they tell of."""
        self.until(
            lambda: any(event["reason"] == reason for event in self.events(name)),
            within=REACH_SECONDS,
            what=f"an Event {reason} about {name}",
        )

    def pods(self, part: str, name: str = "chat", *, leaving: bool = True) -> list[Object]:
        """Pods of a service's part - gateway, scaler, backend - sorted by name, with those that leave."""
        label = {
            "gateway": f"{names.LABEL_GATEWAY}={name}",
            "scaler": f"{names.LABEL_SCALER}={name}",
            "backend": f"{names.LABEL_LLMSERVICE}={name},{names.LABEL_RUNTIME}",
        }[part]
        found = self.api.items(self._path("v1/pods"), labelSelector=label)
        kept = (pod for pod in found if leaving or "deletionTimestamp" not in pod["metadata"])
        return sorted(kept, key=lambda pod: str(pod["metadata"]["name"]))

    def ready_pods(self, part: str, name: str = "chat") -> list[str]:
        """Names of the ready Pods of a part that are not leaving."""
        pods = self.pods(part, name, leaving=False)
        return [pod["metadata"]["name"] for pod in pods if holds(pod["status"], "Ready")]

    def replicas(self, name: str = "chat") -> int:
        """Replicas that the backend's Deployment asks for."""
        deployment = self.api.get(self._path("apps/v1/deployments", name))
        found: int = deployment["spec"]["replicas"]
        return found

    def scaled_object(self, name: str = "chat") -> Object:
        """The service's ScaledObject; its status is there, empty if need be."""
        found: Object = self.api.get(self._path("keda.sh/v1alpha1/scaledobjects", name))
        return {"status": {}, **found}

    def metrics(self, pod: str, *, port: int = names.GATEWAY_PORT) -> str:
        """A Pod's /metrics, through the API server."""
        path = f"{self._path('v1/pods', pod)}:{port}/proxy/metrics"
        return str(self.api.request("GET", path, accept="*/*"))

    def gateway_sample(self, pod: str, metric: str, **labels: str) -> float:
        """A metric of one gateway, 0 when it is absent."""
        return sample(self.metrics(pod), f"noctaya_gateway_{metric}", **labels) or 0.0

    def demand(self, name: str = "chat") -> float:
        """The demand that KEDA is told: of the scaler, or of the only gateway."""
        if self.gateways == 1:
            return sum(self.gateway_sample(pod, "demand") for pod in self.ready_pods("gateway", name))
        return self.scaler_sample("noctaya_scaler_demand", name)

    def streams(self, name: str = "chat") -> float:
        """Streams that KEDA holds open to the service's scaler."""
        if self.gateways == 1:
            return sum(self.gateway_sample(pod, "scaler_streams") for pod in self.ready_pods("gateway", name))
        return self.scaler_sample("noctaya_gateway_scaler_streams", name)

    def scaler_sample(self, metric: str, name: str = "chat") -> float:
        """A metric of the aggregate scaler, 0 when it is absent."""
        pods = self.ready_pods("scaler", name)
        return sum(sample(self.metrics(pod, port=names.AGGREGATOR_PORT), metric) or 0.0 for pod in pods)

    def stub(self, pod: str, **behaviour: Any) -> Object:
        """Tell one stub how to behave; what it says of itself."""
        path = f"{self._path('v1/pods', pod)}:8000/proxy/control"
        found: Object = self.api.request("POST", path, behaviour)
        return found

    def hurry(self, *pods: str) -> None:
        """Let the streams of stubs come to their end soon: what they had to be slow for has been seen."""
        for pod in pods:
            self.stub(pod, tokenDelay="50ms")

    def log(self, pod: str, container: str) -> str:
        """A container's log."""
        return log_of(self.api, self.namespace, pod, container)

    def secret(self, name: str, **data: str) -> None:
        """Make or change a Secret."""
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    def delete_pod(self, pod: str, *, grace: int | None = None) -> None:
        """Delete a Pod, with a grace of its own if given."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        self.api.request("DELETE", self._path("v1/pods", pod), body)

    def close(self) -> None:
        """Delete the namespace, without waiting, and the runtimes."""
        self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        for runtime in self._runtimes:
            self.api.delete(f"/apis/{names.API_VERSION}/inferenceruntimes/{runtime}")


def reaches(client: Client) -> bool:
    """Whether an endpoint can be connected to; wakes nothing, needs no key."""
    try:
        return client.get(names.PATH_HEALTHZ).status == 200
    except OSError:
        return False


def holds(status: Object, kind: str) -> bool:
    """Whether a condition of any object's status is True."""
    conditions = status.get("conditions") or []
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)
