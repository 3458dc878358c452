"""Provider `kind`, by the commands it gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_commands import FakeCommands
from noctaya_cluster import keda
from noctaya_cluster.errors import ClusterError, Unsupported
from noctaya_cluster.kind import SHARED_CLASS, KindCluster

NODES = json.dumps(
    {
        "items": [
            {"metadata": {"name": "noctaya-worker2"}, "spec": {}},
            {"metadata": {"name": "noctaya-worker"}, "spec": {}},
            {
                "metadata": {"name": "noctaya-control-plane"},
                "spec": {
                    "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
                },
            },
        ]
    }
)


@pytest.fixture
def cluster(tmp_path: Path, commands: FakeCommands) -> KindCluster:
    commands.answer("get nodes", NODES)
    return KindCluster(tmp_path / "kind", run=commands, report=lambda line: None, environment={})


def test_a_new_cluster_is_made_beside_the_users_own_kubeconfig(
    cluster: KindCluster, commands: FakeCommands, tmp_path: Path
) -> None:
    cluster.start()

    (create,) = commands.lines("kind create cluster")
    assert f"--kubeconfig={tmp_path / 'kind' / 'kubeconfig'}" in create
    assert "--name=noctaya" in create
    assert "--image" not in create
    others = [line for line in commands.lines("kubectl") if f"--kubeconfig={cluster.kubeconfig}" not in line]
    assert others == []


def test_it_has_two_workers_that_share_a_folder(cluster: KindCluster, tmp_path: Path) -> None:
    cluster.start()

    config = yaml.safe_load((tmp_path / "kind" / "kind.yaml").read_text())
    assert [node["role"] for node in config["nodes"]] == ["control-plane", "worker", "worker"]
    mounts = [node["extraMounts"] for node in config["nodes"] if node["role"] == "worker"]
    assert mounts[0] == mounts[1]
    assert Path(mounts[0][0]["hostPath"]).is_dir()


def test_patches_fit_whichever_kubeadm_the_node_image_has(cluster: KindCluster, tmp_path: Path) -> None:
    """kind translates a patch without an apiVersion; with one, it applies to that version alone."""
    cluster.start()

    config = yaml.safe_load((tmp_path / "kind" / "kind.yaml").read_text())
    patches = [yaml.safe_load(patch) for patch in config["kubeadmConfigPatches"]]
    assert [patch["kind"] for patch in patches] == ["ClusterConfiguration", "KubeletConfiguration"]
    assert all("apiVersion" not in patch for patch in patches)


def test_kedas_chart_is_pinned_and_waited_for(cluster: KindCluster, commands: FakeCommands) -> None:
    cluster.start()

    (install,) = commands.lines("helm", "upgrade --install keda keda")
    assert f"--version={keda.VERSION}" in install
    assert "--namespace=keda" in install
    assert "--wait" in install
    assert f"--kubeconfig={cluster.kubeconfig}" in install


def test_workers_get_accelerators_and_a_class_that_both_can_mount(
    cluster: KindCluster, commands: FakeCommands
) -> None:
    cluster.start()

    patched = [line.split()[4] for line in commands.lines("--subresource=status", "fake-gpu")]
    assert patched == ["noctaya-worker", "noctaya-worker2"]
    applied = [json.loads(text) for line, text in commands.given.items() if " apply " in line]
    kinds = [item["kind"] for document in applied for item in document["items"]]
    assert kinds.count("StorageClass") == 1
    assert kinds.count("PersistentVolume") >= 8
    volumes = [
        item for document in applied for item in document["items"] if item["kind"] == "PersistentVolume"
    ]
    assert all(item["spec"]["storageClassName"] == SHARED_CLASS for item in volumes)
    assert all("ReadWriteMany" in item["spec"]["accessModes"] for item in volumes)


def test_a_cluster_that_is_up_is_kept(cluster: KindCluster, commands: FakeCommands) -> None:
    commands.answer("kind get clusters", "other\nnoctaya\n")
    commands.answer("get --raw /readyz", "ok")

    cluster.start()

    assert commands.lines("kind create") == []
    assert commands.lines("kind delete") == []
    assert commands.lines("kind export kubeconfig", "--name=noctaya") != []


def test_a_cluster_that_does_not_answer_is_made_anew(cluster: KindCluster, commands: FakeCommands) -> None:
    commands.answer("kind get clusters", "noctaya\n")
    commands.answer("get --raw /readyz", (1, "connection refused"))

    cluster.start()

    made = [line for line in commands.lines("kind") if "delete cluster" in line or "create cluster" in line]
    assert [line.split()[1] for line in made] == ["delete", "create"]


def test_another_node_image_can_be_named(tmp_path: Path, commands: FakeCommands) -> None:
    commands.answer("get nodes", NODES)
    environment = {"NOCTAYA_KIND_NODE_IMAGE": "kindest/node:v1.33.4"}
    KindCluster(tmp_path, run=commands, report=lambda line: None, environment=environment).start()

    assert commands.lines("kind create cluster", "--image=kindest/node:v1.33.4") != []


def test_down_removes_our_cluster_and_no_other(
    cluster: KindCluster, commands: FakeCommands, tmp_path: Path
) -> None:
    commands.answer("kind get clusters", "other\nnoctaya\n")
    (tmp_path / "kind").mkdir()

    cluster.stop()

    (delete,) = commands.lines("kind delete cluster")
    assert "--name=noctaya" in delete
    assert not (tmp_path / "kind").exists()


def test_down_without_a_cluster_asks_kind_for_nothing_more(
    cluster: KindCluster, commands: FakeCommands
) -> None:
    commands.answer("kind get clusters", "noctaya-other\n")

    cluster.stop()

    assert commands.lines("kind delete") == []


def test_images_go_to_every_node(cluster: KindCluster, commands: FakeCommands) -> None:
    cluster.load_image(Path("/a.tar"), Path("/b.tar"))

    assert [line.split()[3] for line in commands.lines("kind load image-archive")] == ["/a.tar", "/b.tar"]


def test_the_api_server_is_paused_and_goes_on_whatever_happens(
    cluster: KindCluster, commands: FakeCommands
) -> None:
    with pytest.raises(RuntimeError, match="in between"), cluster.pause_api_server():
        raise RuntimeError("in between")

    stop, go_on = commands.lines("docker exec noctaya-control-plane")
    assert "kill -STOP" in stop
    assert "kill -CONT" in go_on


def test_control_plane_processes_are_not_ours_to_kill(cluster: KindCluster) -> None:
    assert cluster.components() == ()
    with pytest.raises(Unsupported, match="use provider host"):
        cluster.stop_component("kube-scheduler")


def test_what_kind_says_is_in_the_error(cluster: KindCluster, commands: FakeCommands) -> None:
    commands.answer("kind create cluster", (1, "ERROR: failed to pull image"))

    with pytest.raises(ClusterError, match="failed to pull image"):
        cluster.start()
