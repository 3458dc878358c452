"""Provider `existing`: a cluster that somebody else made. Nothing is installed, what is missing is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from . import keda
from .commands import Run, run_command
from .conditions import is_true
from .errors import ClusterError, Unsupported
from .kubectl import Kubectl, Object
from .provider import Cluster, Report

FLAG: Final = "--yes-use-this-cluster"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
KEDA_LABEL: Final = ("app", "keda-operator")
"""By which network policies admit KEDA."""


class ExistingCluster(Cluster):
    """The cluster that a kubeconfig's current context points at when this object first needs it.

    Args:
        folder: for a copy of the kubeconfig, so that a change of context during a test changes nothing.
        confirmed: whether the user has said that this cluster may be used.
        kubectl: the program.
        report: gets what is worth knowing about the cluster.
        run: runs commands.
        environment: for KUBECONFIG.
    """

    name = "existing"

    def __init__(
        self,
        folder: Path,
        *,
        confirmed: bool,
        kubectl: str | Path = "kubectl",
        report: Report = print,
        run: Run = run_command,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._folder = folder
        self._confirmed = confirmed
        self._program = kubectl
        self._report = report
        self._run = run
        self._source = environment.get("KUBECONFIG", "")

    @property
    def kubeconfig(self) -> Path:
        """A copy of our own with nothing but the one context."""
        return self._folder / "kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""
        return Kubectl(self._program, self.kubeconfig, run=self._run)

    def start(self) -> None:
        """Check that it has what is needed. Raises ClusterError with everything that is missing."""
        self._copy_kubeconfig()
        faults = self.faults()
        if faults:
            raise ClusterError("this cluster lacks: " + "; ".join(faults))

    def load_image(self, *archives: Path) -> None:
        """Not ours to do."""
        names = ", ".join(archive.name for archive in archives)
        raise Unsupported(
            f"an existing cluster takes its images from a registry: push {names} there and tell the charts "
            "(image.registry, image.repository)"
        )

    def stop(self) -> None:
        """Forget the copy of the kubeconfig; the cluster stays as it is."""
        self.kubeconfig.unlink(missing_ok=True)

    def status(self) -> str:
        """Nodes and what is missing."""
        self._copy_kubeconfig()
        faults = "; ".join(self.faults()) or "well"
        return f"health  {faults}\n{self.kubectl.run('get', 'nodes', '-o', 'wide').rstrip()}"

    def faults(self) -> list[str]:
        """What a test needs and this cluster has not."""
        answer = self.kubectl.attempt("get", "--raw", "/readyz", timeout=15.0)
        if answer.returncode != 0:
            return [f"an API server that answers ({answer.stderr.strip() or answer.stdout.strip()})"]
        return [*self._node_faults(), *self._keda_faults(), *self._storage_faults()]

    def _node_faults(self) -> list[str]:
        nodes = self.kubectl.items("nodes")
        ready = [node for node in nodes if is_true(node.get("status", {}), "Ready")]
        faults = [] if len(ready) >= 2 else [f"two ready nodes (it has {len(ready)})"]
        unnamed = [
            node["metadata"]["name"] for node in ready if "kubernetes.io/hostname" not in _labels(node)
        ]
        if unnamed:
            faults.append(f"the label kubernetes.io/hostname on {', '.join(unnamed)}")
        return faults

    def _keda_faults(self) -> list[str]:
        deployments = self.kubectl.items("deployments", "-n", keda.NAMESPACE)
        missing = keda.unavailable(deployments)
        faults = []
        if missing:
            faults.append(f"KEDA in namespace {keda.NAMESPACE} ({', '.join(missing)} not available)")
        else:
            key, value = KEDA_LABEL
            operator = next(each for each in deployments if each["metadata"]["name"] == KEDA_LABEL[1])
            found = operator["spec"]["template"]["metadata"].get("labels", {}).get(key)
            if found != value:
                self._report(f"KEDA's Pods have no label {key}={value}: network policies must name another")
        service = self.kubectl.attempt("get", "--raw", keda.METRICS_PATH)
        if service.returncode != 0:
            faults.append(f"the external metrics API ({keda.METRICS_PATH}), which KEDA serves")
        return faults

    def _storage_faults(self) -> list[str]:
        classes = self.kubectl.items("storageclasses")
        default = [
            each
            for each in classes
            if (each["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
        ]
        return [] if default else [f"a default StorageClass (annotation {DEFAULT_CLASS})"]

    def _copy_kubeconfig(self) -> None:
        if not self._confirmed:
            raise ClusterError(
                "provider existing makes namespaces and installs charts in the cluster of your kubeconfig; "
                f"say {FLAG} if that is what you want"
            )
        argv = [str(self._program), "config", "view", "--minify", "--flatten", "--raw"]
        done = self._run(argv)
        if done.returncode != 0 or "server:" not in done.stdout:
            source = self._source or "~/.kube/config"
            said = done.stderr.strip() or "it names no current context"
            raise ClusterError(f"the kubeconfig {source} can't be used: {said}")
        self._folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(done.stdout)


def _labels(obj: Object) -> dict[str, Any]:
    labels: dict[str, Any] = obj["metadata"].get("labels") or {}
    return labels
