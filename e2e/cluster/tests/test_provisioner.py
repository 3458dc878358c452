"""Which volumes are made, enlarged and removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from noctaya_apiserver.client import ApiClient, Refused
from noctaya_cluster.host.addons import PROVISIONER, addons
from noctaya_cluster.host.addresses import Addresses
from noctaya_cluster.host.provisioner import SELECTED, Provisioner, grown, is_over, volume_for

FOLDER = Path("/state/volumes")


def claim(**changes: Any) -> dict[str, Any]:
    """A claim that waits for its volume."""
    spec = {
        "storageClassName": "standard",
        "accessModes": changes.pop("modes", ["ReadWriteOnce"]),
        "resources": {"requests": {"storage": changes.pop("size", "1Gi")}},
        **changes.pop("spec", {}),
    }
    node = changes.pop("node", "node-2")
    return {
        "metadata": {
            "name": "weights",
            "namespace": "team",
            "uid": "1-2-3",
            "annotations": {SELECTED: node} if node else {},
            **changes.pop("metadata", {}),
        },
        "spec": spec,
        "status": {"phase": "Pending", **changes.pop("status", {})},
    }


def test_a_volume_of_a_node_is_for_pods_of_that_node() -> None:
    volume = volume_for(claim(), "node", FOLDER)

    assert volume is not None
    spec = volume["spec"]
    assert spec["hostPath"] == {"path": "/state/volumes/pvc-1-2-3", "type": "Directory"}
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
    ]
    assert spec["claimRef"]["uid"] == "1-2-3"  # a later claim of the same name is another
    assert spec["capacity"] == {"storage": "1Gi"}
    assert spec["persistentVolumeReclaimPolicy"] == "Delete"


def test_a_shared_volume_is_for_pods_of_both_nodes() -> None:
    volume = volume_for(claim(modes=["ReadWriteMany"]), "shared", FOLDER)

    assert volume is not None
    assert "nodeAffinity" not in volume["spec"]
    assert volume["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.parametrize(
    "waiting",
    [
        claim(node=""),
        claim(status={"phase": "Bound"}),
        claim(spec={"volumeName": "pvc-1-2-3"}),
        claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": {SELECTED: "node-1"}}),
    ],
    ids=["no pod yet", "bound", "being bound", "being deleted"],
)
def test_nothing_is_made_too_early_or_twice(waiting: dict[str, Any]) -> None:
    assert volume_for(waiting, "node", FOLDER) is None


@pytest.mark.parametrize(
    "impossible", [claim(modes=["ReadWriteMany"]), claim(spec={"volumeMode": "Block"})], ids=["RWX", "block"]
)
def test_what_a_folder_of_one_node_cannot_be_is_refused_by_name(impossible: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="class standard has no"):
        volume_for(impossible, "node", FOLDER)


def test_a_bound_claim_that_asks_for_more_gets_it() -> None:
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}

    assert grown(claim(size="3Gi", status=bound)) == "3Gi"
    assert grown(claim(size="1Gi", status=bound)) is None
    assert grown(claim(size="3Gi")) is None


def volume(phase: str, **changes: Any) -> dict[str, Any]:
    annotations = {"pv.kubernetes.io/provisioned-by": changes.get("by", PROVISIONER)}
    policy = changes.get("policy", "Delete")
    return {
        "metadata": {"annotations": annotations},
        "spec": {"persistentVolumeReclaimPolicy": policy},
        "status": {"phase": phase},
    }


def test_a_volume_goes_when_its_claim_is_gone_and_only_ours() -> None:
    assert is_over(volume("Released"))
    assert not is_over(volume("Bound"))
    assert not is_over(volume("Released", policy="Retain"))
    assert not is_over(volume("Released", by="example.com/other"))


class Server:
    """Remembers what it was told; knows two storage classes."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.refuses: Refused | None = None

    def find(self, path: str) -> dict[str, Any] | None:
        modes = {"standard": "node", "theirs": None}
        name = path.rpartition("/")[2]
        if name not in modes:
            return None
        ours = {"provisioner": PROVISIONER, "parameters": {"mode": modes[name]}}
        return ours if modes[name] else {"provisioner": "example.com/other"}

    def create(self, obj: dict[str, Any]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.told.append(("create", obj["metadata"]["name"]))

    def apply(self, obj: dict[str, Any], *, manager: str) -> None:
        self.told.append(("apply", obj["message"]))

    def merge(self, path: str, body: dict[str, Any], *, manager: str) -> None:
        self.told.append(("merge", (path, body)))

    def delete(self, path: str) -> None:
        self.told.append(("delete", path))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def provisioner(server: Server, tmp_path: Path) -> Provisioner:
    (tmp_path / "volumes").mkdir()
    return Provisioner(cast(ApiClient, server), tmp_path / "volumes")


def test_the_folder_is_there_before_its_volume_and_open_to_any_user(
    provisioner: Provisioner, server: Server, tmp_path: Path
) -> None:
    provisioner.seen_claim(claim())

    assert server.told == [("create", "pvc-1-2-3")]
    assert (tmp_path / "volumes" / "pvc-1-2-3").stat().st_mode & 0o777 == 0o777


def test_a_claim_seen_twice_has_one_volume(provisioner: Provisioner, server: Server) -> None:
    server.refuses = Refused(409, {"reason": "AlreadyExists"})
    provisioner.seen_claim(claim())

    server.refuses = Refused(403, {"reason": "Forbidden"})
    with pytest.raises(Refused):
        provisioner.seen_claim(claim())


@pytest.mark.parametrize("name", ["theirs", "unknown", ""])
def test_claims_of_other_classes_are_left_alone(provisioner: Provisioner, server: Server, name: str) -> None:
    provisioner.seen_claim(claim(spec={"storageClassName": name}))

    assert server.told == []


def test_an_impossible_claim_gets_an_event(provisioner: Provisioner, server: Server) -> None:
    provisioner.seen_claim(claim(modes=["ReadWriteMany"]))

    assert server.told == [("apply", "class standard has no ReadWriteMany: use a shared class")]


def test_volume_and_claim_both_learn_the_new_size(provisioner: Provisioner, server: Server) -> None:
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    provisioner.seen_claim(claim(size="3Gi", status=bound, spec={"volumeName": "pvc-1-2-3"}))

    capacity = {"capacity": {"storage": "3Gi"}}
    assert [told for _, told in server.told] == [
        ("/api/v1/persistentvolumes/pvc-1-2-3", {"spec": capacity}),
        ("/api/v1/namespaces/team/persistentvolumeclaims/weights/status", {"status": capacity}),
    ]


def test_a_released_volume_takes_its_folder_along_and_never_another(
    provisioner: Provisioner, server: Server, tmp_path: Path
) -> None:
    for path in (tmp_path / "volumes" / "pvc-1", tmp_path / "elsewhere"):
        path.mkdir()
        released = volume("Released")
        released["metadata"]["name"] = path.name
        released["spec"]["hostPath"] = {"path": str(path)}
        provisioner.seen_volume(released)

    assert not (tmp_path / "volumes" / "pvc-1").exists()
    assert (tmp_path / "elsewhere").exists()
    assert [path for _, path in server.told] == [
        "/api/v1/persistentvolumes/pvc-1",
        "/api/v1/persistentvolumes/elsewhere",
    ]


def test_both_classes_are_ours_and_one_is_the_default() -> None:
    classes = {
        each["metadata"]["name"]: each for each in addons(Addresses(200)) if each["kind"] == "StorageClass"
    }

    assert set(classes) == {"standard", "noctaya-shared"}
    for each in classes.values():
        assert each["provisioner"] == PROVISIONER
        assert each["volumeBindingMode"] == "WaitForFirstConsumer"
        assert each["allowVolumeExpansion"] is True
    default = "storageclass.kubernetes.io/is-default-class"
    assert {name: each["metadata"]["annotations"][default] for name, each in classes.items()} == {
        "standard": "true",
        "noctaya-shared": "false",
    }


def test_a_name_outside_the_cluster_is_answered_beside_those_inside() -> None:
    """Two server blocks: in one, the plugin that answers everything would come before that of Kubernetes."""
    (config,) = (each for each in addons(Addresses(200)) if each["kind"] == "ConfigMap")

    inside, outside = config["data"]["Corefile"].split("\n.:53 ")
    assert "kubernetes cluster.local" in inside
    assert "NXDOMAIN" not in inside
    assert "NXDOMAIN" in outside
