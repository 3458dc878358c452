"""Where faults are inflicted: two services in one namespace, and objects of others beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
from noctaya_api import names
from noctaya_apiserver import Refused, path_of
from noctaya_scenarios.chat import Client
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.release import LEASE, NAMESPACE, OPERATOR_LABELS
from noctaya_scenarios.scene import Scene

Object = dict[str, Any]

WARM: Final = "warm"
COLD: Final = "cold"
KEYS: Final = "keys"
STABILIZATION: Final = "60s"
"""Of the busy service. Gateways that the scaler has not heard for 10 s count as gone, whatever the reason,
since an accelerator must come free when they are; so a parting is survived for this long and no longer."""


class Field:
    """A namespace with a busy service and one that is woken now and then.

    Args:
        lab: the cluster.
        scene: the namespace.
    """

    def __init__(self, lab: Lab, scene: Scene) -> None:
        self.lab, self.scene = lab, scene
        self._foreign: dict[str, str] = {}

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
            return self.scene.replicas(COLD) == 0 and not self.scene.pods("backend", COLD)
        except (Refused, httpx.HTTPError):
            return None

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

    def first(self, part: str) -> str:
        """A ready Pod of the busy service's part."""
        ready = self.scene.ready_pods(part, WARM)
        assert ready, f"no ready {part} of {WARM}"
        return ready[0]

    def pods_of(self, namespace: str, label: str) -> list[Object]:
        """Running Pods somewhere in the cluster."""
        pods = self.lab.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=label)
        return [pod for pod in pods if pod["status"].get("podIP")]

    def leader(self) -> str:
        """Pod of the operator that leads."""
        holder: str = self.lab.api.get(LEASE)["spec"].get("holderIdentity") or ""
        pods = self.pods_of(NAMESPACE, OPERATOR_LABELS)
        (leading,) = [name for pod in pods if holder.startswith(name := str(pod["metadata"]["name"]))]
        return leading

    def addresses(self, part: str) -> list[str]:
        """Pod addresses of the busy service's part."""
        return [pod["status"]["podIP"] for pod in self.scene.pods(part, WARM) if pod["status"].get("podIP")]

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
