"""The faults: what is done, what Noctaya promises meanwhile, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from noctaya_scenarios import faults
from noctaya_scenarios.release import NAMESPACE, OPERATOR_LABELS
from noctaya_scenarios.waiting import until

from noctaya_chaos.field import WARM, Field
from noctaya_chaos.load import CUT, UNREACHED
from noctaya_chaos.processes import halting, parted, stopped
from noctaya_chaos.verdict import Promise

Inflict = Callable[[Field], Iterator[None]]

KEDA_OPERATOR: Final = "app=keda-operator"
KEDA_METRICS: Final = "app=keda-operator-metrics-apiserver"
DNS_LABEL: Final = "k8s-app=kube-dns"
HELD: Final = 30.0
"""Seconds that a warm answer may take while its backend is made anew: it is held like a cold one."""
NOTICED: Final = 8.0
"""Seconds until no new connection goes to a gateway that died: kubelet, EndpointSlice, kube-proxy."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to break things.

    Attributes:
        name: short, for the command line.
        done: what is done, for the table.
        expected: what is promised meanwhile, for the table.
        promise: the same for the verdict.
        inflict: a generator: does it, yields once, undoes it.
        seconds: how long it lasts.
    """

    name: str
    done: str
    expected: str
    promise: Promise
    inflict: Inflict
    seconds: float = 15.0


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


ALL_WELL: Final = Promise()
NOTHING_FAILS: Final = "nothing fails"

FAULTS: Final = (
    Fault(
        name="gateway-killed",
        done="one of two gateways: SIGKILL",
        expected=f"what it carried is cut; nothing else, and nothing after {NOTICED:g} s",
        promise=Promise(results=frozenset({UNREACHED, CUT}), within=NOTICED),
        inflict=killed("gateway"),
    ),
    Fault(
        name="scaler-killed",
        done="the aggregate scaler: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=killed("scaler"),
    ),
    Fault(
        name="operator-killed",
        done="the operator that leads: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=killed_leader,
    ),
    Fault(
        name="operators-killed",
        done="every operator: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=killed_elsewhere(NAMESPACE, OPERATOR_LABELS),
    ),
    Fault(
        name="backend-killed",
        done="the backend's process: SIGKILL, as the kernel does when memory runs out",
        expected="streams end with an error event, answers under way with a 502; the next ones are held",
        promise=Promise(
            results=frozenset({"error event backend_interrupted", "status 502 backend_interrupted"}),
            within=NOTICED,
            slowest=HELD,
        ),
        inflict=killed("backend"),
    ),
    Fault(
        name="backend-gone",
        done="the backend's Pod: deleted without grace",
        expected="as above",
        promise=Promise(
            results=frozenset({"error event backend_interrupted", "status 502 backend_interrupted"}),
            within=NOTICED,
            slowest=HELD,
        ),
        inflict=gone_backend,
    ),
    Fault(
        name="readiness-flaps",
        done="the backend turns unready and ready three times",
        expected="nothing fails; requests wait",
        promise=Promise(slowest=HELD),
        inflict=readiness_flaps,
        seconds=5.0,
    ),
    Fault(
        name="keda-killed",
        done="KEDA's operator: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=killed_elsewhere(faults.KEDA, KEDA_OPERATOR),
    ),
    Fault(
        name="keda-metrics-killed",
        done="KEDA's metrics server: SIGKILL",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=killed_elsewhere(faults.KEDA, KEDA_METRICS),
    ),
    Fault(
        name="gateways-parted",
        done="no packet between the gateways and the scaler for 30 s",
        expected="nothing fails; no scale to zero within `scaleDownStabilization` (here 60 s)",
        promise=ALL_WELL,
        inflict=gateways_parted_from_scaler,
        seconds=30.0,
    ),
    Fault(
        name="keda-parted",
        done="no packet between KEDA and the scaler for 30 s",
        expected="nothing fails, the busy service is not scaled to zero",
        promise=ALL_WELL,
        inflict=keda_parted_from_scaler,
        seconds=30.0,
    ),
    Fault(
        name="scaler-silent",
        done="the aggregate scaler: stopped for 20 s (SIGSTOP)",
        expected="nothing fails, the busy service is not scaled to zero",
        promise=ALL_WELL,
        inflict=silent("scaler"),
        seconds=20.0,
    ),
    Fault(
        name="api-server-paused",
        done="the API server: stopped for 30 s",
        expected="no warm request fails; cold ones are held",
        promise=ALL_WELL,
        inflict=api_server_paused,
        seconds=30.0,
    ),
    Fault(
        name="dns-silent",
        done="cluster DNS: stopped for 15 s",
        expected="no warm request fails; cold ones are held",
        promise=ALL_WELL,
        inflict=dns_silent,
    ),
    Fault(
        name="dns-slow",
        done="cluster DNS answers up to 0.8 s late, for 20 s",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=dns_slow,
        seconds=20.0,
    ),
    Fault(
        name="rotation",
        done="client keys, demand token, gateways, scaler, operator: all replaced at once",
        expected=NOTHING_FAILS,
        promise=ALL_WELL,
        inflict=everything_rotated,
        seconds=30.0,
    ),
)


@contextmanager
def inflicted(fault: Fault, field: Field) -> Iterator[None]:
    """The fault, within the block."""
    with contextmanager(fault.inflict)(field):
        yield
