"""Provider `kind`: where Docker has access to registries, kind with KEDA's chart.

Beside what kind makes: accelerators that are only numbers, and volumes that both workers can mount.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from . import keda
from .accelerators import give_accelerators
from .commands import Run, must, run_command
from .errors import ClusterError
from .kubectl import Kubectl
from .provider import Cluster, Report

CLUSTER: Final = "noctaya"
CHARTS: Final = "https://kedacore.github.io/charts"
NODE_IMAGE: Final = "NOCTAYA_KIND_NODE_IMAGE"
"""Environment variable: another node image than the one that belongs to the installed kind."""
SHARED_CLASS: Final = "noctaya-shared"
SHARED_VOLUMES: Final = 12
SHARED_PATH: Final = "/var/noctaya-shared"
"""The same folder of this machine on every node."""
SECONDS: Final = 600.0
API_PROCESS: Final = "kube-apiserver"


class KindCluster(Cluster):
    """A cluster of kind with one control plane and two workers.

    Args:
        folder: for its kubeconfig, its configuration and shared volumes.
        kubectl: the program.
        helm: the program.
        report: gets a line of progress now and then.
        run: runs commands.
        environment: for the node image.
    """

    name = "kind"

    def __init__(
        self,
        folder: Path,
        *,
        kubectl: str | Path = "kubectl",
        helm: str | Path = "helm",
        report: Report = print,
        run: Run = run_command,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._folder = folder
        self._kubectl = kubectl
        self._helm = str(helm)
        self._report = report
        self._run = run
        self._image = environment.get(NODE_IMAGE, "")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, apart from the user's own."""
        return self._folder / "kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""
        return Kubectl(self._kubectl, self.kubeconfig, run=self._run)

    def start(self) -> None:
        """Bring it up; one that answers gets what it lacks, one that does not answer is made anew."""
        if CLUSTER in self._clusters():
            self._kind("export", "kubeconfig", f"--kubeconfig={self.kubeconfig}")
            if self.kubectl.attempt("get", "--raw", "/readyz", timeout=15.0).returncode == 0:
                self._report("kind: the cluster is up")
                self._complete()
                return
            self._report("kind: the cluster does not answer, it is made anew")
            self.stop()
        self._create()
        self._complete()

    def load_image(self, *archives: Path) -> None:
        """Bring images to every node."""
        for archive in archives:
            self._kind("load", "image-archive", str(archive))

    def stop(self) -> None:
        """Remove our cluster of kind, no other."""
        if CLUSTER in self._clusters():
            self._kind("delete", "cluster", f"--kubeconfig={self.kubeconfig}")
        if self._folder.exists():
            shutil.rmtree(self._folder)

    def status(self) -> str:
        """Nodes and KEDA."""
        if CLUSTER not in self._clusters():
            raise ClusterError(
                f"kind has no cluster {CLUSTER}: `python -m noctaya_cluster up --cluster kind`"
            )
        nodes = self.kubectl.run("get", "nodes", "-o", "wide").rstrip()
        deployments = self.kubectl.run("get", "deployments", "-n", keda.NAMESPACE).rstrip()
        return f"KUBECONFIG  {self.kubeconfig}\n{nodes}\n{deployments}"

    @contextmanager
    def pause_api_server(self) -> Iterator[None]:
        """SIGSTOP within the block; at most a minute or so, then kubelet restarts what does not answer it."""
        self._signal_api_server("STOP")
        try:
            yield
        finally:
            self._signal_api_server("CONT")

    def _create(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        shared = self._folder / "shared"
        shared.mkdir(exist_ok=True)
        shared.chmod(0o777)
        config = self._folder / "kind.yaml"
        config.write_text(yaml.safe_dump(kind_config(shared)))
        image = [f"--image={self._image}"] if self._image else []
        self._report("kind: creating the cluster")
        self._kind(
            "create",
            "cluster",
            f"--config={config}",
            f"--kubeconfig={self.kubeconfig}",
            "--wait=300s",
            *image,
        )

    def _complete(self) -> None:
        self._report(f"kind: KEDA's chart {keda.VERSION}")
        argv = [self._helm, f"--kubeconfig={self.kubeconfig}", "upgrade", "--install", "keda", "keda"]
        argv += [f"--repo={CHARTS}", f"--version={keda.VERSION}", f"--namespace={keda.NAMESPACE}"]
        must(self._run, [*argv, "--create-namespace", "--wait", "--timeout=5m"], timeout=SECONDS)
        self.kubectl.apply(shared_storage())
        give_accelerators(self.kubectl, self.nodes)

    def _clusters(self) -> list[str]:
        return must(self._run, ["kind", "get", "clusters"]).split()

    def _kind(self, *arguments: str) -> str:
        return must(self._run, ["kind", *arguments, f"--name={CLUSTER}"], timeout=SECONDS)

    def _signal_api_server(self, signal: str) -> None:
        # The node has a shell and /proc; whether it has pkill depends on its version.
        found = f'[ "$(cat $each/comm)" = {API_PROCESS} ] && kill -{signal} "${{each#/proc/}}" && done=1'
        script = f'done=; for each in /proc/[0-9]*; do {found}; done; [ -n "$done" ]'
        must(self._run, ["docker", "exec", f"{CLUSTER}-control-plane", "sh", "-c", script])


def kind_config(shared: Path) -> dict[str, Any]:
    """One control plane, two workers, the autoscaler and kubelet as quick as those of provider host."""
    mounts = [{"hostPath": str(shared), "containerPath": SHARED_PATH}]
    # Without an apiVersion kind fits a patch to the kubeadm of its node image.
    manager = {
        "kind": "ClusterConfiguration",
        "controllerManager": {"extraArgs": {"horizontal-pod-autoscaler-sync-period": "5s"}},
    }
    kubelet = {"kind": "KubeletConfiguration", "syncFrequency": "10s"}
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "kubeadmConfigPatches": [json.dumps(manager), json.dumps(kubelet)],
        "nodes": [
            {"role": "control-plane"},
            *({"role": "worker", "extraMounts": mounts} for _ in range(2)),
        ],
    }


def shared_storage() -> list[dict[str, Any]]:
    """A class that both workers can mount, with its volumes: kind's own provisioner knows one node only."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": SHARED_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return [storage, *(_shared_volume(number) for number in range(1, SHARED_VOLUMES + 1))]


def _shared_volume(number: int) -> dict[str, Any]:
    name = f"{SHARED_CLASS}-{number}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": SHARED_CLASS,
            "hostPath": {"path": f"{SHARED_PATH}/{name}", "type": "DirectoryOrCreate"},
        },
    }
