"""Faults of processes and of what lies between them: killed, stopped, parted, replaced.

Each is a generator: it does it, yields once, undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from noctaya_scenarios import faults
from noctaya_scenarios.release import NAMESPACE
from noctaya_scenarios.waiting import until

from noctaya_chaos.field import WARM, Field
from noctaya_chaos.processes import halting, parted, stopped

Inflict = Callable[[Field], Iterator[None]]

KEDA_OPERATOR: Final = "app=keda-operator"
KEDA_METRICS: Final = "app=keda-operator-metrics-apiserver"
DNS_LABEL: Final = "k8s-app=kube-dns"


def killed(part: str) -> Inflict:
    """SIGKILL to the containers of one Pod of the busy service."""

    def inflict(field: Field) -> Iterator[None]:
        faults.kill_containers(field.first(part))
        yield

    return inflict


def killed_elsewhere(namespace: str, label: str) -> Inflict:
    """SIGKILL to the containers of all Pods with a label."""

    def inflict(field: Field) -> Iterator[None]:
        for pod in field.pods_of(namespace, label):
            faults.kill_containers(pod["metadata"]["name"])
        yield

    return inflict


def killed_leader(field: Field) -> Iterator[None]:
    """SIGKILL to the operator that leads."""
    faults.kill_containers(field.leader())
    yield


def gone_backend(field: Field) -> Iterator[None]:
    """The backend's Pod is deleted without grace, as when its node is lost."""
    field.scene.delete_pod(field.first("backend"), grace=0)
    yield


def silent(part: str) -> Inflict:
    """SIGSTOP to one Pod of the busy service."""

    def inflict(field: Field) -> Iterator[None]:
        with stopped(field.first(part)):
            yield

    return inflict


def gateways_parted_from_scaler(field: Field) -> Iterator[None]:
    """No packet between the busy service's gateways and its scaler."""
    with parted(field.first("scaler"), field.addresses("gateway")):
        yield


def keda_parted_from_scaler(field: Field) -> Iterator[None]:
    """No packet between KEDA and the busy service's scaler."""
    addresses = [pod["status"]["podIP"] for pod in field.pods_of(faults.KEDA, KEDA_OPERATOR)]
    with parted(field.first("scaler"), addresses):
        yield


def api_server_paused(field: Field) -> Iterator[None]:
    """The API server does not answer."""
    with field.lab.cluster.pause_api_server():
        yield


def dns_pods(field: Field) -> list[str]:
    return [pod["metadata"]["name"] for pod in field.pods_of("kube-system", DNS_LABEL)]


def dns_silent(field: Field) -> Iterator[None]:
    """Cluster DNS does not answer."""
    with stopped(*dns_pods(field)):
        yield


def dns_slow(field: Field) -> Iterator[None]:
    """Cluster DNS answers up to 0.8 s late."""
    with halting(*dns_pods(field), silent=0.8, awake=0.2):
        yield


def readiness_flaps(field: Field) -> Iterator[None]:
    """The backend says every few seconds that it is not well, then that it is."""
    pod = field.first("backend")
    for _ in range(3):
        field.scene.stub(pod, healthy=False)
        until(lambda: not field.scene.ready_pods("backend", WARM), within=30, what="an unready backend")
        field.scene.stub(pod, healthy=True)
        until(lambda: field.scene.ready_pods("backend", WARM), within=30, what="a ready backend")
    yield


def everything_rotated(field: Field) -> Iterator[None]:
    """A second client key, another demand token, new gateways, a new scaler, a new operator, at once."""
    with ExitStack() as stack:
        stack.enter_context(field.more_keys())
        field.forget_demand_secret()
        field.scene.change(WARM, endpoint={"coldStart": {"heartbeatInterval": "700ms"}})
        field.scene.delete_pod(field.first("scaler"))
        field.lab.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{field.leader()}")
        yield
