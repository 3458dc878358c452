"""What a cluster is to those who use one, whichever way it comes to be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .diagnostics import collect
from .errors import Unsupported
from .kubectl import Kubectl

Report = Callable[[str], None]


class Cluster(ABC):
    """A Kubernetes cluster: KEDA in namespace `keda`, two schedulable nodes, a default StorageClass."""

    name: str
    """Of the provider: `host`, `kind` or `existing`."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; there once it is started."""

    @property
    @abstractmethod
    def kubectl(self) -> Kubectl:
        """kubectl for this cluster."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that take pods, sorted."""
        found = (
            node["metadata"]["name"]
            for node in self.kubectl.items("nodes")
            if not node["spec"].get("unschedulable") and not _repels(node["spec"].get("taints") or [])
        )
        return sorted(found)

    @abstractmethod
    def start(self) -> None:
        """Bring it up, or see that it is well when it is up. Raises ClusterError."""

    @abstractmethod
    def load_image(self, *archives: Path) -> None:
        """Bring images (`docker save` archives) to every node, under their own names. Raises ClusterError."""

    @abstractmethod
    def stop(self) -> None:
        """Remove it and everything of it; nothing to do when there is none. Raises ClusterError."""

    @abstractmethod
    def status(self) -> str:
        """How it is, for people. Raises ClusterError when there is none."""

    def diagnostics(self, folder: Path, *, namespaces: tuple[str, ...] = ()) -> None:
        """Write everything that helps to find a fault: objects, events, logs of all containers.

        Args:
            folder: made when it is not there.
            namespaces: besides KEDA's and the system's; none for all. `failures.txt` names what can't be had.
        """
        collect(self.kubectl, folder, namespaces=namespaces)

    def components(self) -> tuple[str, ...]:
        """Names of the processes that can be stopped and started; none where that is not ours to do."""
        return ()

    def stop_component(self, name: str) -> None:
        """Kill a process of the control plane. Raises Unsupported where it is not ours to touch."""
        raise Unsupported(f"provider {self.name} can't stop {name}: use provider host")

    def start_component(self, name: str) -> None:
        """Start what `stop_component` killed and return when it works."""
        raise Unsupported(f"provider {self.name} can't start {name}: use provider host")

    @contextmanager
    def pause_api_server(self) -> Iterator[None]:
        """Within the block the API server answers nobody: connections stay open, requests hang."""
        raise Unsupported(f"provider {self.name} can't pause its API server: use provider host or kind")
        yield


def _repels(taints: list[dict[str, str]]) -> bool:
    return any(taint["effect"] in {"NoSchedule", "NoExecute"} for taint in taints)
