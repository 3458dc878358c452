"""A running system without nodes: a real API server, operators, gateways, an aggregate scaler, model servers.

Services are made as users make them. The operator renders their Pods; behind each Pod that matters a real
process runs with the environment that was rendered, so that what it exports is what it exports in a cluster.
Kubelet, scheduler and KEDA are stand-ins. Everything is on loopback and ends with this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from noctaya_apiserver.client import Object, wait_for
from noctaya_apiserver.control_plane import ControlPlane
from noctaya_apiserver.follower import Follower
from noctaya_apiserver.keda_stand_in import SCALED_OBJECTS, FakeKeda
from noctaya_apiserver.noctaya import OPERATOR, noctaya_plane
from noctaya_apiserver.nodes import FakeNode
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.world import World, runtime

from noctaya_monitoring.discovery import Discovery
from noctaya_monitoring.processes import (
    GATEWAY,
    SCALER,
    STUB,
    Server,
    endpoints,
    environment,
    mount,
    token_of,
)
from noctaya_monitoring.scaler_client import ScalerClient
from noctaya_monitoring.scrape import Place

MODELS: Final = "models"
PAIRS: Final = "pairs"
"""Namespace whose services have two gateways and an aggregate scaler."""
GATEWAYS: Final = {MODELS: 1, PAIRS: 2}
SYSTEM: Final = "noctaya-system"
BUSY: Final = 90.0
"""Seconds that anything may take on a busy machine; a tenth of it on an idle one."""
METRICS: Final = "noctaya-metrics"
"""The Service of the operators' metrics."""
SLOW, MISSING = "example.com/slow:1", "example.com/missing:1"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One service. `mounted` are files of its Secrets; `listens` is whether KEDA does."""

    name: str
    namespace: str = MODELS
    spec: Mapping[str, Any] = field(default_factory=dict)
    mounted: Mapping[str, str | bytes] = field(default_factory=dict)
    listens: bool = True


@dataclass(kw_only=True)
class Running:
    """One service with its processes."""

    stub: Server
    gateways: dict[str, Server]
    """By the name of their Pod."""
    scaler: tuple[str, Server] | None
    keda: ScalerClient | None

    @property
    def url(self) -> str:
        """Of its first gateway."""
        return f"http://127.0.0.1:{next(iter(self.gateways.values())).http()}"


class Node(FakeNode):
    """Pods of downloads get the address that their agents listen on."""

    agent = ""

    def address(self, pod: Object) -> str:
        """As the base class, save for a Job's Pod."""
        owners = pod["metadata"].get("ownerReferences") or [{}]
        return self.agent if self.agent and owners[0].get("kind") == "Job" else super().address(pod)


class Fleet:
    """Everything that runs; a context manager.

    Args:
        folder: for data and logs.
        wanted: services that get processes.
        agent: address of the agents of downloads.
    """

    def __init__(self, folder: Path, *, wanted: Iterable[Wanted], agent: str = "") -> None:
        self.folder = folder
        self.services: dict[str, Running] = {}
        self.operators: dict[str, OperatorProcess] = {}
        self._wanted = list(wanted)
        self._stack = ExitStack()
        self.plane: ControlPlane = noctaya_plane(folder / "plane")
        self.agent = agent

    @cached_property
    def discovery(self) -> Discovery:
        """What Prometheus finds its targets by."""
        return Discovery(self.plane.client(), self.folder / "targets.json")

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.plane)
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def world(self, namespace: str = MODELS) -> World:
        """A namespace as its administrator sees it."""
        return World(self.plane.client(), namespace)

    def places(self) -> list[Place]:
        """Where the processes behind the Services of metrics listen."""
        found = []
        for wanted in self._wanted:
            running, name = self.services[wanted.name], wanted.name
            pods = [(name, pod, each) for pod, each in running.gateways.items()]
            if running.scaler is not None:
                pods.append((f"{name}-scaler", *running.scaler))
            for service, pod, server in [*pods, (f"{name}-backend", ".*", running.stub)]:
                address = f"127.0.0.1:{server.http()}"
                found.append(Place(namespace=wanted.namespace, service=service, pod=pod, address=address))
        for name, operator in self.operators.items():
            address = operator.metrics_address
            found.append(Place(namespace=SYSTEM, service=METRICS, pod=name, address=address))
        return found

    def _start(self) -> None:
        api = self.plane.client()
        for name, image in (("engine", SLOW), ("missing", MISSING)):
            api.apply(runtime(name, image=image))
        node = Node(self.plane.client().request)
        node.agent = self.agent
        node.register()
        for path, seen in (
            ("/api/v1/pods", node.seen),
            (SCALED_OBJECTS, FakeKeda(self.plane.client()).seen),
        ):
            follower = Follower(self.plane.client(), path, seen)
            follower.start()
            self._stack.callback(follower.stop)
        for namespace, gateways in GATEWAYS.items():
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            self.operators[f"operator-{namespace}"] = self._operator(namespace, gateways)
        for wanted in self._wanted:
            self.world(wanted.namespace).create(wanted.name, **wanted.spec)
        stubs = {wanted.name: self._stub(wanted.name) for wanted in self._wanted}
        for wanted in self._wanted:
            self.services[wanted.name] = self._running(wanted, stubs[wanted.name], node)
        self._publish_operators()
        self.discovery.start()
        self._stack.callback(self.discovery.stop)

    def _operator(self, namespace: str, gateways: int) -> OperatorProcess:
        flags = (
            f"--namespaces={namespace}",
            f"--gateway-replicas={gateways}",
            f"--prewarm-image={SLOW}",
        )
        name = f"operator-{namespace}"
        operator = OperatorProcess(self.plane.kubeconfig(OPERATOR), self.folder, *flags, name=name)
        operator.start()
        self._stack.callback(operator.stop)
        return operator

    def _stub(self, name: str) -> Server:
        return self._server(STUB, "--port=0", name=f"{name}-backend", env={})

    def _running(self, wanted: Wanted, stub: Server, node: FakeNode) -> Running:
        world, name = self.world(wanted.namespace), wanted.name
        world.await_condition("AutoscalingReady", "True", "ScaledObjectApplied", name, within=BUSY)
        mounts = self.folder / f"{name}-mounts"
        mount(mounts, wanted.mounted)
        count = GATEWAYS[wanted.namespace]
        pods = self._pods(world, f"serving.noctaya.io/gateway={name}", count=count)
        scaler = None
        aggregator = 0
        if count > 1:
            mount(
                mounts,
                {"demand-auth/token": token_of(world.await_object("v1/secrets", f"{name}-demand-auth"))},
            )
            (pod,) = self._pods(world, f"serving.noctaya.io/scaler={name}", count=1)
            deployment = world.await_object("apps/v1/deployments", f"{name}-scaler")
            env = environment(deployment, mounts=mounts, member="", aggregator=0)
            scaler = pod, self._server(SCALER, name=pod, env=env)
            aggregator = scaler[1].http()
        deployment = world.await_object("apps/v1/deployments", f"{name}-gateway")
        gateways = {}
        for pod in pods:
            env = environment(deployment, mounts=mounts, member=pod, aggregator=aggregator)
            gateways[pod] = self._server(GATEWAY, name=pod, env=env)
        keda = None
        if wanted.listens:
            dialled = scaler[1] if scaler is not None else next(iter(gateways.values()))
            keda = ScalerClient(
                self.plane.client(),
                node,
                namespace=wanted.namespace,
                service=name,
                address=f"127.0.0.1:{dialled.grpc()}",
                backend=f"127.0.0.1:{stub.http()}",
                endpoints=endpoints(mounts),
            )
            keda.start()
            self._stack.callback(keda.stop)
        return Running(stub=stub, gateways=gateways, scaler=scaler, keda=keda)

    def _pods(self, world: World, label: str, *, count: int) -> list[str]:
        path = f"/api/v1/namespaces/{world.namespace}/pods"

        def look() -> list[str] | None:
            found = world.api.items(path, labelSelector=label)
            return [pod["metadata"]["name"] for pod in found] if len(found) == count else None

        found = wait_for(look, within=BUSY, what=f"{count} Pods with {label}")
        assert found is not None
        return found

    def _server(self, program: str, *arguments: str, name: str, env: Mapping[str, str]) -> Server:
        server = Server(program, *arguments, log=self.folder / f"{name}.log", env=env)
        self._stack.callback(server.child.kill)
        return server

    def _publish_operators(self) -> None:
        """What the chart's Service and the Pods behind it are, for operators that run outside."""
        api = self.plane.client()
        labels = {"app.kubernetes.io/name": "noctaya", "app.kubernetes.io/component": "controller-manager"}
        metadata = {"name": METRICS, "namespace": SYSTEM, "labels": labels}
        ports = [{"name": "metrics", "port": 8080}]
        api.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})
        addresses = [
            {
                "addresses": [f"10.245.0.{number}"],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "namespace": SYSTEM, "name": name},
            }
            for number, name in enumerate(self.operators, start=1)
        ]
        owner = {"kubernetes.io/service-name": METRICS, **labels}
        api.create(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": METRICS, "namespace": SYSTEM, "labels": owner},
                "addressType": "IPv4",
                "ports": ports,
                "endpoints": addresses,
            }
        )
