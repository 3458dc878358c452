"""What is told to the API server once it answers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from noctaya_parts import module_folder

from .. import keda
from ..accelerators import give_accelerators
from ..kubectl import Kubectl, Object
from .addons import addons
from .addresses import Addresses
from .images import cache_folder
from .layout import NODES
from .readiness import wait_until

PROGRAMS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kube-router",
    "kubectl",
    "coredns",
    "pause",
    *keda.PATHS,
)


def keda_objects(kubectl: Path) -> list[Object]:
    """KEDA's objects, from the manifests of its module; rendered once for each version."""
    file = cache_folder() / f"keda-{keda.VERSION}.yaml"
    if not file.exists():
        source = module_folder("keda") / "config" / "default"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".new")
        partial.write_text(Kubectl(kubectl, None).run("kustomize", str(source)))
        partial.replace(file)
    return keda.objects(file.read_text())


def install(kubectl: Kubectl, addresses: Addresses, manifests: list[Object]) -> None:
    """Cluster DNS, storage classes, KEDA."""
    kubectl.apply(addons(addresses))
    first = [each for each in manifests if each["kind"] in {"Namespace", "CustomResourceDefinition"}]
    kubectl.apply(first)
    kubectl.apply([each for each in manifests if each not in first])


def finish_nodes(kubectl: Kubectl, addresses: Addresses) -> None:
    """Give every node its network and its accelerators, once it is there."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda pair: _finish(kubectl, addresses, *pair), enumerate(NODES, start=1)))


def _finish(kubectl: Kubectl, addresses: Addresses, number: int, node: str) -> None:
    wait_until(
        lambda: kubectl.attempt("get", "node", node).returncode == 0,
        within=60.0,
        what=lambda: f"{node} did not register",
    )
    pods = {"spec": {"podCIDR": addresses.pods_of(number), "podCIDRs": [addresses.pods_of(number)]}}
    kubectl.run("patch", "node", node, "--type=merge", "-p", json.dumps(pods))
    give_accelerators(kubectl, [node])
