"""Makes persistent volumes of folders: `python -m noctaya_cluster.host.provisioner KUBECONFIG FOLDER`.

A claim of one of our storage classes gets a volume once a pod that uses it has a node. Class parameter
`mode`: `node` is a folder for that node alone, ReadWriteOnce; `shared` is one for both, any access mode. A
larger request makes the volume larger, which costs a folder nothing. A volume whose claim is gone goes with
its folder.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

from noctaya_apiserver.client import ApiClient, Refused
from noctaya_apiserver.follower import Follower

from .addons import PROVISIONER

Object = dict[str, Any]

CLAIMS: Final = "/api/v1/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SINGLE: Final = {"ReadWriteOnce", "ReadWriteOncePod"}


def volume_for(claim: Object, mode: str, folder: Path) -> Object | None:
    """The volume that a claim waits for; None while nothing is to be made.

    Raises:
        ValueError: the claim asks for what the class can't give.
    """
    metadata, spec = claim["metadata"], claim["spec"]
    node = (metadata.get("annotations") or {}).get(SELECTED)
    if claim.get("status", {}).get("phase") != "Pending" or spec.get("volumeName"):
        return None
    if not node or "deletionTimestamp" in metadata:
        return None
    if mode == "node" and not set(spec["accessModes"]) <= SINGLE:
        raise ValueError(
            f"class {spec['storageClassName']} has no {', '.join(spec['accessModes'])}: use a shared class"
        )
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        raise ValueError(f"class {spec['storageClassName']} has no block volumes")
    name = f"pvc-{metadata['uid']}"
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "hostPath": {"path": str(folder / name), "type": "Directory"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }
    if mode == "node":
        hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        volume["spec"]["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
        }
    return volume


def grown(claim: Object) -> str | None:
    """The size that a bound claim asks for and does not have, None when it is content."""
    status = claim.get("status", {})
    if status.get("phase") != "Bound" or "deletionTimestamp" in claim["metadata"]:
        return None
    wanted = claim["spec"]["resources"]["requests"]["storage"]
    return wanted if wanted != (status.get("capacity") or {}).get("storage") else None


def is_over(volume: Object) -> bool:
    """Whether a volume of ours is to be removed: its claim is gone."""
    spec = volume["spec"]
    ours = (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == PROVISIONER
    over = volume.get("status", {}).get("phase") in {"Released", "Failed"}
    return ours and over and spec["persistentVolumeReclaimPolicy"] == "Delete"


class Provisioner:
    """Does what the functions above decide.

    Args:
        client: of the API server.
        folder: for the volumes' folders.
    """

    def __init__(self, client: ApiClient, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._modes: dict[str, str] = {}

    def seen_claim(self, claim: Object) -> None:
        """A claim as it is now."""
        mode = self._mode(claim["spec"].get("storageClassName") or "")
        if mode is None:
            return
        try:
            volume = volume_for(claim, mode, self._folder)
        except ValueError as error:
            self._tell(claim, str(error))
            return
        if volume is not None:
            self._make(volume)
        elif (size := grown(claim)) is not None:
            self._grow(claim, size)

    def seen_volume(self, volume: Object) -> None:
        """A volume as it is now."""
        if not is_over(volume):
            return
        path = Path(volume["spec"]["hostPath"]["path"])
        if path.parent == self._folder and path.exists():
            shutil.rmtree(path)
        self._client.delete(f"{VOLUMES}/{volume['metadata']['name']}")
        say(f"removed {volume['metadata']['name']}")

    def _mode(self, name: str) -> str | None:
        if name not in self._modes:
            found = self._client.find(f"{CLASSES}/{name}") if name else None
            if found is None or found["provisioner"] != PROVISIONER:
                return None
            self._modes[name] = (found.get("parameters") or {}).get("mode", "node")
        return self._modes[name]

    def _make(self, volume: Object) -> None:
        path = Path(volume["spec"]["hostPath"]["path"])
        path.mkdir(exist_ok=True)
        path.chmod(0o777)  # pods of any user, as with every provisioner of folders
        try:
            self._client.create(volume)
        except Refused as error:
            if error.status != 409:  # made already; the claim is bound in a moment
                raise
            return
        say(f"made {volume['metadata']['name']}")

    def _grow(self, claim: Object, size: str) -> None:
        metadata, volume = claim["metadata"], claim["spec"]["volumeName"]
        capacity = {"capacity": {"storage": size}}
        self._client.merge(f"{VOLUMES}/{volume}", {"spec": capacity}, manager=PROVISIONER)
        path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}"
        self._client.merge(f"{path}/status", {"status": capacity}, manager=PROVISIONER)
        say(f"{volume} is {size} now")

    def _tell(self, claim: Object, message: str) -> None:
        """An event, which is where people look."""
        metadata = claim["metadata"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{metadata['uid'][:8]}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "reason": "ProvisioningFailed",
            "type": "Warning",
            "message": message,
            "source": {"component": PROVISIONER},
        }
        self._client.apply(event, manager=PROVISIONER)


def say(line: str) -> None:
    """To the log."""
    print(line, flush=True)


def main(kubeconfig: Path, folder: Path) -> None:
    """Follow claims and volumes until killed. Raises what ended the following of either."""
    followers = []
    for path, kind in ((CLAIMS, "claim"), (VOLUMES, "volume")):
        provisioner = Provisioner(ApiClient.of_kubeconfig(kubeconfig), folder)
        seen = provisioner.seen_claim if kind == "claim" else provisioner.seen_volume
        followers.append(Follower(ApiClient.of_kubeconfig(kubeconfig), path, seen))
    for follower in followers:
        follower.start()
    while True:
        for follower in followers:
            follower.check()
        time.sleep(1.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
