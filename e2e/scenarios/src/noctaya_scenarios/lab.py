"""The cluster that a run of scenarios has: up, with our images and our operator, and namespaces on demand."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from noctaya_apiserver import ApiClient
from noctaya_cluster import Cluster

from noctaya_scenarios.access import Access
from noctaya_scenarios.reach import Reach
from noctaya_scenarios.release import DELIVERY_IMAGES, Release, helm_for, load_images
from noctaya_scenarios.scene import Scene
from noctaya_scenarios.turns import Turns

Report = Callable[[str], None]

LABEL: Final = "noctaya-scenarios"
NAME_LIMIT: Final = 40
_numbers = itertools.count(1)


class Lab:
    """What a session of tests has in common.

    Args:
        cluster: up.
        access: to it.
        release: the operator's chart in it.
        gateways: of each service.
        folder: remembers what the cluster has.
    """

    def __init__(
        self, cluster: Cluster, access: Access, *, release: Release, gateways: int, folder: Path
    ) -> None:
        self.cluster, self.access, self.release = cluster, access, release
        self._folder = folder
        self.gateways = gateways
        self.reach = Reach(access.api)

    @property
    def api(self) -> ApiClient:
        """The cluster's API."""
        return self.access.api

    def load_delivery_images(self, *, report: Report = print) -> None:
        """Bring the images to the nodes that only scenarios of model delivery need."""
        identity = self.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
        load_images(
            self.cluster,
            self._folder,
            identity=identity,
            names=DELIVERY_IMAGES,
            stamp_name="loaded-delivery.json",
            report=report,
        )

    def turns(self) -> Turns:
        """A scenario's part in the order of all scenarios of this cluster, of whatever test process."""
        cluster = hashlib.sha256(str(self.cluster.kubeconfig).encode()).hexdigest()[:8]
        folder = self._folder / f"turns-{cluster}"
        folder.mkdir(exist_ok=True)
        return Turns(folder)

    @contextmanager
    def scene(self, name: str) -> Iterator[Scene]:
        """A namespace of its own for a scenario, deleted in the end."""
        namespace = f"{namespace_prefix(name)}-{os.getpid()}-{next(_numbers)}"
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {LABEL: "true"}},
            }
        )
        scene = Scene(self.api, namespace, reach=self.reach, gateways=self.gateways)
        try:
            yield scene
        finally:
            scene.close()


@contextmanager
def open_lab(
    cluster: Cluster, folder: Path, *, gateways: int, as_installed: bool = False, report: Report = print
) -> Iterator[Lab]:
    """Bring everything up that is not up yet; several test processes may do so at once.

    `as_installed` takes cluster, images and release as they are. Whoever runs beside a scenario that pauses
    the API server must do so: `Cluster.start` mends what does not answer, by making it anew.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not as_installed:
        cluster.start()
    with Access(cluster.kubeconfig, folder, kubectl=cluster.kubectl.prefix[0]) as access:
        release = Release(helm_for(cluster, report=report), folder)
        if not as_installed:
            identity = access.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
            load_images(cluster, folder, identity=identity, report=report)
            release.ensure(gateways=gateways, report=report)
        yield Lab(cluster, access, release=release, gateways=gateways, folder=folder)


def state_folder() -> Path:
    """Where it is remembered which images a cluster has."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "noctaya" / "scenarios"


def namespace_prefix(name: str) -> str:
    """A legal beginning of a namespace's name."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words[:NAME_LIMIT].rstrip("-") or "scenario"
