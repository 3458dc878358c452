"""The cluster for the time of the measure, with the operator and one service whose model is ready at once."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from noctaya_api import names
from noctaya_cluster import Cluster, ClusterError, choose_provider
from noctaya_scenarios.lab import Lab, open_lab
from noctaya_scenarios.scene import Scene

Object = dict[str, Any]

SERVICE: Final = "chat"
PLAIN: Final = "plain"
"""A Deployment with the service's Pod that nobody but the bench scales."""
AT_ONCE: Final = {"STUB_TOKEN_DELAY": "0s", "STUB_STARTUP_DELAY": "0s"}


@contextmanager
def cluster_up() -> Iterator[Cluster]:
    """The cluster that this machine can have; taken down afterwards unless it was up before."""
    cluster = choose_provider(report=say)
    try:
        cluster.status()
        was_up = True
    except ClusterError:
        was_up = False
    cluster.start()
    try:
        yield cluster
    finally:
        if not was_up:
            cluster.stop()


@contextmanager
def service_at_zero(cluster: Cluster, folder: Path, *, gateways: int) -> Iterator[tuple[Lab, Scene]]:
    """A namespace with the service, asleep, and its plain twin with no replica."""
    with open_lab(cluster, folder, gateways=gateways, report=say) as lab, lab.scene("bench") as scene:
        # No pause before zero, so that cycles are short; the first heartbeat comes later than any answer.
        scene.deploy(
            SERVICE,
            runtime=scene.runtime(drain=False, **AT_ONCE),
            scaling={"scaleDownStabilization": "0s"},
            endpoint={"coldStart": {"heartbeatInterval": "60s"}},
        )
        path = f"/apis/apps/v1/namespaces/{scene.namespace}/deployments/{SERVICE}"
        lab.api.create(plain_twin(lab.api.get(path)))
        yield lab, scene


def about(cluster: Cluster, lab: Lab) -> dict[str, str]:
    """What the figures were measured on."""
    keda = lab.api.get("/apis/apps/v1/namespaces/keda/deployments/keda-operator")
    image: str = keda["spec"]["template"]["spec"]["containers"][0]["image"]
    return {
        "cluster": f"provider {cluster.name}, {len(cluster.nodes)} nodes",
        "Kubernetes": lab.api.get("/version")["gitVersion"],
        "KEDA": image.rpartition(":")[2],
    }


def plain_twin(deployment: Object) -> Object:
    """A Deployment of the same Pods under other labels, with no replica, that nobody else touches. Pure."""
    labels = {names.LABEL_NAME: PLAIN}
    template = copy.deepcopy(deployment["spec"]["template"])
    template["metadata"] = {"labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": PLAIN, "namespace": deployment["metadata"]["namespace"]},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def say(line: str) -> None:
    """Progress."""
    print(line, file=sys.stderr, flush=True)
