"""Everything that helps to find a fault, written into a folder: works on any cluster that kubectl reaches."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from .errors import ClusterError
from .kubectl import Kubectl, Object

SYSTEM: Final = ("kube-system", "keda", "noctaya-system")
SECONDS: Final = 30.0
LOG_BYTES: Final = 4 * 2**20
WORKERS: Final = 4
KINDS: Final = (
    "llmservices,inferenceruntimes",
    "scaledobjects,hpa",
    "deployments,replicasets,jobs,pods,services,endpointslices,pdb,networkpolicies",
    "pvc,configmaps,leases,serviceaccounts",
)
"""In one file each; Secrets stay out."""
WIDE: Final = (
    "nodes",
    "pv,storageclasses",
    "apiservices",
    "namespaces",
    "crd",
    "validatingwebhookconfigurations",
)


def collect(kubectl: Kubectl, folder: Path, *, namespaces: Iterable[str] = ()) -> None:
    """Write the state of the cluster.

    Args:
        kubectl: for the cluster.
        folder: made when it is not there.
        namespaces: besides the system's; none for all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    collector = _Collector(kubectl, folder)
    wanted = list(dict.fromkeys((*SYSTEM, *namespaces))) if namespaces else collector.namespaces()
    with ThreadPoolExecutor(WORKERS) as pool:
        pool.map(collector.write_wide, WIDE)
        pool.map(collector.write_namespace, wanted)
        pool.submit(collector.save, "nodes.txt", "describe", "nodes")
        pool.submit(collector.save, "top-level.txt", "get", "nodes,pods", "-A", "-o", "wide")
    collector.finish()


class _Collector:
    """Writes answers; what fails is remembered and never stops the rest."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder
        self._failures: list[str] = []

    def namespaces(self) -> list[str]:
        """All of them."""
        return [each["metadata"]["name"] for each in self._items("namespaces")]

    def write_wide(self, kinds: str) -> None:
        """Objects of no namespace."""
        self.save(f"cluster/{kinds.replace(',', '-')}.yaml", "get", kinds, "-o", "yaml")

    def write_namespace(self, namespace: str) -> None:
        """Objects, events and logs of one namespace."""
        within = ("-n", namespace)
        for kinds in KINDS:
            name = f"{namespace}/{kinds.split(',')[0]}"
            self.save(f"{name}.txt", "get", kinds, *within, "-o", "wide")
            self.save(f"{name}.yaml", "get", kinds, *within, "-o", "yaml")
        self.save(f"{namespace}/events.txt", "get", "events", *within, "--sort-by=.lastTimestamp")
        self.save(f"{namespace}/describe.txt", "describe", "pods,deployments,jobs,pvc,hpa", *within)
        for pod in self._items("pods", *within):
            self._write_logs(namespace, pod)

    def save(self, name: str, *arguments: str) -> None:
        """The output of kubectl as a file."""
        self._write(name, self._ask(*arguments))

    def finish(self) -> None:
        """Name what could not be had."""
        if self._failures:
            (self._folder / "failures.txt").write_text("\n".join(self._failures) + "\n")

    def _write_logs(self, namespace: str, pod: Object) -> None:
        name = pod["metadata"]["name"]
        for container, restarted in containers(pod):
            arguments = ("logs", name, "-n", namespace, "-c", container, f"--limit-bytes={LOG_BYTES}")
            file = f"{namespace}/logs/{name}.{container}"
            self.save(f"{file}.log", *arguments, "--timestamps")
            if restarted:
                self.save(f"{file}.previous.log", *arguments, "--timestamps", "--previous")

    def _items(self, *arguments: str) -> list[Object]:
        try:
            return self._kubectl.items(*arguments)
        except ClusterError as error:
            self._failures.append(str(error))
            return []

    def _ask(self, *arguments: str) -> str:
        try:
            done = self._kubectl.attempt(*arguments, timeout=SECONDS)
        except ClusterError as error:
            self._failures.append(str(error))
            return ""
        if done.returncode != 0:
            self._failures.append(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _write(self, name: str, text: str) -> None:
        if text:
            file = self._folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def containers(pod: Object) -> list[tuple[str, bool]]:
    """Containers of a pod that have started once, and whether they have a previous log."""
    status: dict[str, Any] = pod.get("status", {})
    found = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    started = (each for each in found if "waiting" not in each.get("state", {}) or each["restartCount"] > 0)
    return [(each["name"], each["restartCount"] > 0) for each in started]
