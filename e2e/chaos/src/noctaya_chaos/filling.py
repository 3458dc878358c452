"""Faults of disks: no room where a model is being put, no room on a node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from noctaya_api import names
from noctaya_scenarios import manifests
from noctaya_scenarios.delivery import DELIVERY_SECONDS, MIB, await_bytes, prewarm_of
from noctaya_scenarios.model_places import ModelPlaces, model_places

from noctaya_chaos.field import WARM, Field
from noctaya_chaos.nodes import Node, SmallDisk

Object = dict[str, Any]

STORED: Final = "stored"
SMALL: Final = "noctaya-chaos-small"
MODEL: Final = 48 * MIB
DISK: Final = 160 * MIB
"""The model, and the 64 MiB that the agent leaves free, and some."""
SLOW: Final = 2 * MIB
"""Bytes a second, so that the disk becomes full in the middle of it."""
TOLD_SECONDS: Final = 60.0
PRESSURE: Final = {
    "evictionHard": {"nodefs.available": "99.9%"},
    "evictionPressureTransitionPeriod": "5s",
    # Before it evicts anybody, a kubelet removes unused images; here they could not be pulled again.
    "imageMinimumGCAge": "24h",
}
"""More than any disk has that somebody uses: to the kubelet its own is full."""
EVICTED_SECONDS: Final = 150.0
"""A kubelet looks every 10 s and evicts one Pod at a time."""


def cache_full(field: Field) -> Iterator[None]:
    """The disk of a model's cache becomes full during the download to it; later it is freed."""
    node = Node(field.lab.cluster, field.lab.cluster.nodes[0])
    field.lab.load_delivery_images()
    with (
        node.small_disk(size=DISK) as disk,
        volume_on(field, node, disk),
        model_places(field.lab.api, field.scene.namespace, reach=field.lab.reach) as places,
        downloading(field, places),
    ):
        await_bytes(field.scene, STORED)
        disk.fill()
        field.expect(
            lambda: prewarm_of(field.scene, STORED).get("reason") == "NoSpace",
            within=TOLD_SECONDS,
            what=f"the status of {STORED} says NoSpace",
        )
        yield
        disk.free()
        places.heal()
        field.expect(
            lambda: prewarm_of(field.scene, STORED).get("state") == "Complete",
            within=DELIVERY_SECONDS,
            what=f"{STORED} is downloaded once there is room",
        )
        field.expect(
            lambda: field.scene.client(STORED).ask().status == 200,
            within=DELIVERY_SECONDS,
            what=f"{STORED} answers with what was downloaded",
        )


@contextmanager
def downloading(field: Field, places: ModelPlaces) -> Iterator[None]:
    """A service whose model comes slowly to the small disk; gone after the block."""
    files = {"config.json": "{}", "model.safetensors": {"size": MODEL, "seed": 7}}
    places.repository("org/stored", files)
    places.fault(route="cdn", effect={"bytes_per_second": SLOW})
    source = {"uri": "hf://org/stored", "endpoint": places.endpoint}
    cache = {"strategy": "NodeLocalPVC", "storageClassName": SMALL, "size": "1Gi", "prewarm": True}
    runtime = field.scene.runtime(WARM)
    field.scene.create(STORED, **manifests.service_spec(runtime, model={"source": source}, cache=cache))
    try:
        yield
    finally:
        field.scene.delete(STORED, propagation="Foreground")
        field.expect(
            lambda: (
                field.scene.get("v1/persistentvolumeclaims", names.cache_claim_name(STORED)) is None
                and field.lab.api.find(field.scene.path(STORED)) is None
            ),
            within=DELIVERY_SECONDS,
            what=f"{STORED} is gone with its claim",
        )


@contextmanager
def volume_on(field: Field, node: Node, disk: SmallDisk) -> Iterator[None]:
    """A volume that is the small disk, of a storage class of its own."""
    made = [storage_class(), volume(field.scene.namespace, node=node.name, path=str(disk.path))]
    paths = [
        f"/apis/storage.k8s.io/v1/storageclasses/{SMALL}",
        f"/api/v1/persistentvolumes/{made[1]['metadata']['name']}",
    ]
    for obj in made:
        field.lab.api.apply(obj)
    try:
        yield
    finally:
        for path in paths:
            field.lab.api.delete(path)


def storage_class() -> Object:
    """One that provisions nothing."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": SMALL},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(namespace: str, *, node: str, path: str) -> Object:
    """A folder of one node."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{SMALL}-{namespace}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": SMALL,
            "hostPath": {"path": path, "type": "Directory"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    }


def node_full(field: Field) -> Iterator[None]:
    """The node of the busy backend has no room: its kubelet evicts one Pod after the other, without grace."""
    node = Node(field.lab.cluster, field.node_of(field.first("backend")))
    with node.configured(PRESSURE):
        field.expect(node.pressed, within=TOLD_SECONDS, what=f"{node.name} is under pressure")
        field.expect(
            lambda: field.left(node.name),
            within=EVICTED_SECONDS,
            what=f"nothing of {WARM} runs on {node.name}, and all of it elsewhere",
        )
        yield
