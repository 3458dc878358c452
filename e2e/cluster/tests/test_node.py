"""What a node is told; each line of configuration that has a reason is here with it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from noctaya_cluster.host.addresses import Addresses
from noctaya_cluster.host.layout import Layout
from noctaya_cluster.host.node import KERNEL_SETTINGS, Node

PROGRAMS = {name: Path("/parts") / name for name in ("kubelet", "kube-proxy", "kube-router")}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(2, "node-2", Layout(tmp_path / "state"), Addresses(200))


def test_containerd_keeps_images_in_the_state_folder_and_takes_pause_from_there(node: Node) -> None:
    config = tomllib.loads(node.containerd_config("overlayfs"))

    assert config["root"] == str(node.folder / "containerd")
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == "noctaya/pause:1"
    assert cri["disable_apparmor"] is True
    assert cri["restrict_oom_score_adj"] is True
    assert cri["netns_mounts_under_state_dir"] is True  # /run is the node's own: they go with it
    assert cri["containerd"]["snapshotter"] == "overlayfs"
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is False
    assert cri["cni"]["conf_dir"] == str(node.folder / "cni")


def test_where_overlays_do_not_work_containerd_copies(node: Node) -> None:
    config = tomllib.loads(node.containerd_config("native"))

    assert config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["snapshotter"] == "native"


def test_pods_keep_their_addresses_between_nodes(node: Node) -> None:
    """A NetworkPolicy knows a pod by its address, so nothing on the way may change it."""
    bridge, portmap = node.cni_config()["plugins"]

    assert bridge["ipMasq"] is False
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.201.2.0/24"}]]
    assert Path(bridge["ipam"]["dataDir"]).is_relative_to(node.folder)
    assert portmap["type"] == "portmap"


def test_kubelet_runs_on_cgroup_v1_and_without_a_cgroup_of_pods(node: Node) -> None:
    config = node.kubelet_config()

    assert config["failCgroupV1"] is False
    assert config["cgroupDriver"] == "cgroupfs"
    assert config["cgroupsPerQOS"] is False
    assert config["enforceNodeAllocatable"] == []
    assert config["failSwapOn"] is False


def test_kubelet_answers_only_to_those_whom_the_api_server_knows(node: Node) -> None:
    config = node.kubelet_config()

    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["authentication"]["x509"]["clientCAFile"] == str(node.layout.pki / "ca.crt")


def test_kubelet_never_removes_an_image_that_no_registry_could_give_back(node: Node) -> None:
    assert node.kubelet_config()["imageGCHighThresholdPercent"] == 100


def test_pods_ask_cluster_dns_and_nobody_else(node: Node) -> None:
    node.write("overlayfs")

    config = yaml.safe_load((node.folder / "kubelet.yaml").read_text())
    assert config["clusterDNS"] == ["10.202.0.10"]
    assert Path(config["resolvConf"]).read_text() == "nameserver 10.202.0.10\n"


def test_nothing_of_a_node_is_outside_its_folder_or_its_private_folders(node: Node) -> None:
    private = node.private()

    assert {"/run", "/var/log", "/var/lib", "/var/lib/kubelet"} == set(private)
    folders = [folder for folder in private.values() if isinstance(folder, Path)]
    assert all(folder.is_relative_to(node.folder) for folder in folders)
    assert Path(node.kubelet_config()["volumePluginDir"]).is_relative_to(node.folder)
    # A later mount inside an earlier one, never the other way round.
    assert list(private).index("/var/lib") < list(private).index("/var/lib/kubelet")


def test_the_kernel_is_left_as_it_is() -> None:
    """kubelet and kube-proxy would set these for the whole machine."""
    assert {"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic"} <= set(KERNEL_SETTINGS)


def test_kube_proxy_touches_no_limit_of_the_machines_connection_tracker(node: Node) -> None:
    argv = node.proxy(PROGRAMS)

    assert "--conntrack-max-per-core=0" in argv
    assert "--conntrack-min=0" in argv
    assert "--cluster-cidr=10.201.0.0/16" in argv
    assert "--hostname-override=node-2" in argv


def test_kube_router_is_a_firewall_only(node: Node) -> None:
    argv = node.router(PROGRAMS)

    assert "--run-firewall=true" in argv
    assert {"--run-router=false", "--run-service-proxy=false", "--run-loadbalancer=false"} <= set(argv)
