"""A cluster as the place where the demo's model lives: a Deployment that KEDA scales, and its Pods."""

import signal
import time
from typing import Any

from noctaya_cluster import Kubectl

from noctaya_demo.cluster.forward import Forward
from noctaya_demo.cluster.watching import Change, Watch
from noctaya_demo.place import Marks, PlaceFailed

LABEL = "serving.noctaya.io/llmservice"
MARK_WITHIN = 10.0
"""All of it has happened when the answer is here; what may be late is only the news."""
CONTAINER = "serving"


class ClusterPlace:
    """One service in a namespace, as a `Place`. A context manager: it watches as long as it lasts."""

    noun = "model pod"
    # The lease of the start lasts 15 s beyond readiness, KEDA's cooldown 5 s, and the Pod drains.
    zero_within = 120.0

    def __init__(self, kubectl: Kubectl, *, namespace: str, service: str, forward: Forward) -> None:
        self._kubectl = kubectl
        self._where = ("--namespace", namespace)
        self._backend = ("--selector", f"{LABEL}={service}")
        self._service = service
        self._forward = forward
        self._watches: list[Watch] = []

    def __enter__(self) -> "ClusterPlace":
        field = f"--field-selector=metadata.name={self._service}"
        self._watches.append(Watch(self._kubectl, "pods", *self._where, *self._backend))
        self._watches.append(Watch(self._kubectl, "deployments", *self._where, field))
        return self

    def __exit__(self, *_: object) -> None:
        for watch in self._watches:
            watch.stop()

    def running(self) -> str | None:
        """A Pod of the model, by name."""
        listed = self._kubectl.run("get", "pods", *self._where, *self._backend, "--output=name").split()
        return f"a model {listed[0]}".replace("/", " ") if listed else None

    def marks(self, *, after: float) -> Marks:
        """The start of a Pod, by the moments at which a client of the API server hears of it."""
        pods, deployments = self._watches
        found = [("KEDA scaled", deployments.first(_scaled, after=after, within=MARK_WITHIN))]
        for name, mark in (("scheduled", _scheduled), ("started", _started), ("ready", _ready)):
            found.append((name, pods.first(mark, after=after, within=MARK_WITHIN)))
        return found

    def wait_for_zero(self, *, after: float, within: float) -> None:
        """Return when a Pod of the model has gone and none is left."""
        pods, _ = self._watches
        deadline = time.monotonic() + within
        pods.first(lambda change: change.gone or None, after=after, within=within)
        while running := self.running():
            if time.monotonic() > deadline:
                raise PlaceFailed(f"{running} still runs after {within:g} s")
            time.sleep(0.5)

    def stay(self) -> None:
        """Until Ctrl-C, or until the way to the endpoint breaks."""
        try:
            while self._forward.running:
                time.sleep(0.5)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is in order from here on
            return
        raise PlaceFailed("kubectl port-forward ended")


def _scaled(change: Change) -> float | None:
    return change.at if change.object["spec"].get("replicas") else None


def _scheduled(change: Change) -> float | None:
    return change.at if change.object["spec"].get("nodeName") and not _leaving(change) else None


def _started(change: Change) -> float | None:
    statuses: list[dict[str, Any]] = change.object.get("status", {}).get("containerStatuses") or []
    runs = any(each["name"] == CONTAINER and "running" in each.get("state", {}) for each in statuses)
    return change.at if runs and not _leaving(change) else None


def _ready(change: Change) -> float | None:
    conditions: list[dict[str, Any]] = change.object.get("status", {}).get("conditions") or []
    holds = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return change.at if holds and not _leaving(change) else None


def _leaving(change: Change) -> bool:
    return change.gone or "deletionTimestamp" in change.object["metadata"]
