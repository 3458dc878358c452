"""Where faults are inflicted: two services in one namespace, and objects of others beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from noctaya_api import names
from noctaya_apiserver import Refused, path_of
from noctaya_scenarios.chat import Client
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.release import LEASE, NAMESPACE, OPERATOR_LABELS
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.waiting import NotYet, until

Object = dict[str, Any]

WARM: Final = "warm"
COLD: Final = "cold"
KEYS: Final = "keys"
BACKEND_PORT: Final = 8000
STABILIZATION: Final = "60s"
"""Of the busy service. Gateways that the scaler has not heard for 10 s count as gone, whatever the reason,
since an accelerator must come free when they are; so a parting is survived for this long and no longer."""
OVER: Final = frozenset({"Failed", "Succeeded"})
"""Phases of Pods that hold nothing any more; an evicted one stays as an object until somebody deletes it."""


class Field:
    """A namespace with a busy service and one that is woken now and then.

    Args:
        lab: the cluster.
        scene: the namespace.
    """

    def __init__(self, lab: Lab, scene: Scene) -> None:
        self.lab, self.scene = lab, scene
        self._foreign: dict[str, str] = {}
        self._complaints: list[str] = []

    def prepare(self) -> tuple[Client, Client]:
        """Make everything and wait until it is there; clients of the warm and of the cold service."""
        self.scene.secret(KEYS, keys="first-key\n")
        for obj in self._objects_of_others():
            made = self.lab.api.create(obj)
            self._foreign[path_of(made)] = made["metadata"]["resourceVersion"]
        warm = self.scene.deploy(
            WARM,
            runtime=self.scene.runtime(WARM),
            scaling={"scaleDownStabilization": STABILIZATION},
            endpoint={"authentication": {"secretRef": {"name": KEYS, "key": "keys"}}},
        ).with_key("first-key")
        cold = self.scene.deploy(COLD, runtime=self.scene.runtime(COLD))
        return warm, cold

    def asleep(self) -> bool | None:
        """Whether the cold service is at zero, its last Pod gone; None when the API server can't be asked."""
        try:
            return self.at_zero(COLD)
        except (Refused, httpx.HTTPError):
            return None

    def at_zero(self, name: str) -> bool:
        """Whether a service asks for no replica and none of its backend's Pods runs."""
        return self.scene.replicas(name) == 0 and not self.running("backend", name)

    def running(self, part: str, name: str = WARM) -> list[Object]:
        """Pods of a part that have not ended."""
        return [pod for pod in self.scene.pods(part, name) if pod["status"].get("phase") not in OVER]

    def node_of(self, pod: str) -> str:
        """Where a Pod of this namespace runs."""
        found = self.lab.api.get(f"/api/v1/namespaces/{self.scene.namespace}/pods/{pod}")
        return str(found["spec"]["nodeName"])

    def left(self, node: str) -> bool:
        """Whether nothing of the busy service runs on a node, and all of it is ready elsewhere."""
        parts = {"gateway": self.lab.gateways, "scaler": 1, "backend": 1}
        there = [pod for part in parts for pod in self.running(part) if pod["spec"].get("nodeName") == node]
        return not there and all(len(self.scene.ready_pods(part, WARM)) == n for part, n in parts.items())

    def activation(self, name: str = COLD) -> Object:
        """`status.lastActivation`; empty when there is none or the API server can't be asked."""
        try:
            found: Object = self.scene.status(name).get("lastActivation") or {}
        except (Refused, httpx.HTTPError):
            return {}
        return found

    def expect(self, look: Callable[[], object], *, within: float, what: str) -> bool:
        """Wait for something that a fault promises; what does not come is a complaint, and False."""
        try:
            until(look, within=within, what=what)
        except NotYet as error:
            self._complaints.append(str(error).partition("\n")[0])
            return False
        return True

    def complaints(self) -> list[str]:
        """What was expected in vain since this was asked last."""
        told, self._complaints = self._complaints, []
        return told

    def backends(self) -> int | None:
        """Replicas of the busy service's backend; None when the API server can't be asked."""
        try:
            return self.scene.replicas(WARM)
        except (Refused, httpx.HTTPError):
            return None

    def changed_objects_of_others(self) -> list[str]:
        """Those that were touched or are gone."""
        return [
            path
            for path, version in self._foreign.items()
            if (found := self.lab.api.find(path)) is None or found["metadata"]["resourceVersion"] != version
        ]

    def first(self, part: str, name: str = WARM) -> str:
        """A ready Pod of a service's part."""
        ready = self.scene.ready_pods(part, name)
        assert ready, f"no ready {part} of {name}"
        return ready[0]

    def pods_of(self, namespace: str, label: str) -> list[Object]:
        """Running Pods somewhere in the cluster."""
        pods = self.lab.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=label)
        return [pod for pod in pods if pod["status"].get("podIP")]

    def operators(self) -> list[str]:
        """Pods of the operator that are not leaving."""
        pods = self.pods_of(NAMESPACE, OPERATOR_LABELS)
        return [str(pod["metadata"]["name"]) for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def leading(self) -> str | None:
        """Pod of the operator that leads; None while none does."""
        holder: str = self.lab.api.get(LEASE)["spec"].get("holderIdentity") or ""
        return next((name for name in self.operators() if holder.startswith(name)), None)

    def leader(self) -> str:
        """Pod of the operator that leads."""
        found = self.leading()
        assert found is not None, "no operator leads"
        return found

    def addresses(self, part: str) -> list[str]:
        """Pod addresses of the busy service's part."""
        return [pod["status"]["podIP"] for pod in self.scene.pods(part, WARM) if pod["status"].get("podIP")]

    def backend(self) -> Client:
        """A client of the busy service's backend, past the gateway."""
        return Client(self.addresses("backend")[0], BACKEND_PORT)

    def forget_demand_secret(self) -> None:
        """Delete the token between gateways and scaler; the operator makes a new one."""
        name = f"{WARM}-demand-auth"
        self.lab.api.delete(f"/api/v1/namespaces/{self.scene.namespace}/secrets/{name}")

    @contextmanager
    def more_keys(self) -> Iterator[None]:
        """A second client key within the block; the first stays."""
        self.scene.secret(KEYS, keys="first-key\nsecond-key\n")
        try:
            yield
        finally:
            self.scene.secret(KEYS, keys="first-key\n")

    def _objects_of_others(self) -> list[Object]:
        """Of the kinds that the operator makes, with names close to those it uses, labelled for nobody."""
        metadata = {"namespace": self.scene.namespace}
        settings = {"data": {"owner": "somebody else"}}
        port = {"port": names.SERVICE_PORT, "protocol": "TCP"}
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "warm"}, **settings},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "name": "warm-tokens"}},
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {**metadata, "name": "warm-backend-of-others"},
                "spec": {"selector": {"app": "others"}, "ports": [port]},
            },
        ]
