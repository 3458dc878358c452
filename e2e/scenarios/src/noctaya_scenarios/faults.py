"""What breaks: processes killed without warning, nodes cordoned and drained, KEDA gone or not there yet."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from noctaya_apiserver import ApiClient, path_of

from noctaya_scenarios.access import Access
from noctaya_scenarios.scene import holds
from noctaya_scenarios.waiting import until

Object = dict[str, Any]

KEDA: Final = "keda"
KEDA_SECONDS: Final = 120.0
GONE_SECONDS: Final = 90.0
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/{}/deployments"
SERVER_FIELDS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


class NoSuchProcess(Exception):
    """A container's process can't be found on this machine."""


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    pid: int

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone needs none."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def processes_of(pod: str) -> list[Process]:
    """Every process of a Pod that has its name in its environment.

    The nodes of the clusters that tests start are containers or namespaces of this machine, so their
    processes are seen from here. Raises NoSuchProcess.
    """
    found = [
        Process(int(process.name))
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and _is_of(process, pod)
    ]
    if not found:
        raise NoSuchProcess(
            f"no process of Pod {pod} is on this machine: its node must be, and we must be root"
        )
    return found


def kill_containers(pod: str) -> list[int]:
    """SIGKILL to every process of a Pod; their ids. Raises NoSuchProcess."""
    found = processes_of(pod)
    for process in found:
        process.signal(signal.SIGKILL)
    return [process.pid for process in found]


def _is_of(process: Path, pod: str) -> bool:
    try:
        environment = (process / "environ").read_bytes().split(b"\0")
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        return False
    return f"HOSTNAME={pod}".encode() in environment


@contextmanager
def no_new_pods(api: ApiClient, namespace: str) -> Iterator[None]:
    """Within the block nothing new runs in this namespace, as if no node had room: its quota is used up."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-new-pods", "namespace": namespace},
        "spec": {"hard": {"pods": "0"}},
    }
    path = path_of(api.create(quota))
    try:
        # A quota holds from the moment its status tells what is used.
        until(
            lambda: api.get(path).get("status", {}).get("used"), within=GONE_SECONDS, what="the quota holds"
        )
        yield
    finally:
        api.delete(path)


@contextmanager
def cordoned(access: Access, *nodes: str) -> Iterator[None]:
    """Within the block nothing new is scheduled to these nodes."""
    try:
        for node in nodes:
            access.kubectl("cordon", node)
        yield
    finally:
        for node in nodes:
            access.kubectl("uncordon", node)


@contextmanager
def drained(access: Access, node: str, *, within: float = 180.0) -> Iterator[None]:
    """Empty a node as an administrator does before maintenance; back in service after the block."""
    try:
        access.kubectl(
            "drain",
            node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            f"--timeout={within:.0f}s",
            within=within + 30,
        )
        yield
    finally:
        access.kubectl("uncordon", node)


def restart(access: Access, namespace: str, deployment: str, *, within: float = KEDA_SECONDS) -> None:
    """Roll a Deployment and wait until that is done."""
    access.kubectl("-n", namespace, "rollout", "restart", f"deployment/{deployment}")
    access.kubectl(
        "-n",
        namespace,
        "rollout",
        "status",
        f"deployment/{deployment}",
        f"--timeout={within:.0f}s",
        within=within + 30,
    )


def kill_keda(access: Access) -> None:
    """KEDA's operator goes without warning; returns when another one is available."""
    label = "app=keda-operator"
    before = _pod_uids(access.api, label)
    assert before, "no Pod of KEDA's operator has the label app=keda-operator"
    access.kubectl("-n", KEDA, "delete", "pod", "-l", label, "--grace-period=0", "--force")
    until(
        lambda: (after := _pod_uids(access.api, label)) and not after & before,
        within=KEDA_SECONDS,
        what="another Pod of KEDA's operator",
    )
    _await_available(access.api, "keda-operator")


def _pod_uids(api: ApiClient, label: str) -> set[str]:
    pods = api.items(f"/api/v1/namespaces/{KEDA}/pods", labelSelector=label)
    return {pod["metadata"]["uid"] for pod in pods}


@contextmanager
def keda_absent(api: ApiClient) -> Iterator[None]:
    """Within the block the cluster knows nothing of KEDA; afterwards it has come, as if newly installed.

    Every ScaledObject of the cluster is lost by this.
    """
    crds = [each for each in api.items(CRDS) if each["spec"]["group"].endswith("keda.sh")]
    assert crds, "KEDA is not installed"
    scale = {each["metadata"]["name"]: each["spec"]["replicas"] for each in _keda_deployments(api)}
    assert any(scale.values()), f"KEDA does not run: {scale}"
    try:
        for name in scale:
            _scale(api, name, 0)
        for crd in crds:
            _release_instances(api, crd)
            api.delete(f"{CRDS}/{crd['metadata']['name']}")
        for crd in crds:
            path = f"{CRDS}/{crd['metadata']['name']}"
            until(lambda path=path: api.find(path) is None, within=GONE_SECONDS, what=f"{path} is gone")  # type: ignore[misc]
        yield
    finally:
        api.install([_as_new(crd) for crd in crds])
        for name, replicas in scale.items():
            _scale(api, name, replicas)
        for name in scale:
            _await_available(api, name)


def _release_instances(api: ApiClient, crd: Object) -> None:
    """Take KEDA's finalizers off, which nobody would take off while it doesn't run."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    for instance in api.items(f"/apis/{group}/v1alpha1/{plural}"):
        if instance["metadata"].get("finalizers"):
            instance.setdefault("apiVersion", f"{group}/v1alpha1")
            instance.setdefault("kind", crd["spec"]["names"]["kind"])
            api.merge(path_of(instance), {"metadata": {"finalizers": None}})


def _as_new(obj: Object) -> Object:
    fresh = copy.deepcopy(obj)
    for name in SERVER_FIELDS:
        fresh["metadata"].pop(name, None)
    fresh.pop("status", None)
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **fresh}


def _keda_deployments(api: ApiClient) -> list[Object]:
    return api.items(DEPLOYMENTS.format(KEDA))


def _scale(api: ApiClient, name: str, replicas: int) -> None:
    api.merge(f"{DEPLOYMENTS.format(KEDA)}/{name}/scale", {"spec": {"replicas": replicas}})


def _await_available(api: ApiClient, name: str) -> None:
    path = f"{DEPLOYMENTS.format(KEDA)}/{name}"
    until(
        lambda: holds(api.get(path).get("status") or {}, "Available"),
        within=KEDA_SECONDS,
        what=f"{name} is available",
    )
