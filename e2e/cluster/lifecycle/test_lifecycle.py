"""The host provider for real, in order: each test takes the cluster as the one before has left it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from machine_state import Machine, traces
from noctaya_cluster import ClusterError
from noctaya_cluster.host.cluster import HostCluster

pytestmark = [pytest.mark.xdist_group("lifecycle"), pytest.mark.timeout(600)]
SECONDS = 60.0
UP = [sys.executable, "-m", "noctaya_cluster", "up", "--cluster", "host"]
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture(scope="module")
def before() -> Machine:
    return Machine.now()


def eventually(look: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < end, f"not within {SECONDS:g} s: {what}"
        time.sleep(0.2)


def pod(name: str, node: str, claim: str) -> dict[str, object]:
    """A pod that only mounts; its image is the one of every sandbox."""
    container = {
        "name": "still",
        "image": "noctaya/pause:1",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }


def test_without_a_cluster_everything_but_up_and_down_says_so(cluster: HostCluster) -> None:
    for ask in (cluster.status, cluster.faults, lambda: cluster.load_image(Path("a.tar"))):
        with pytest.raises(ClusterError, match="there is no cluster"):
            ask()
    cluster.stop()  # nothing to do is no error


def test_up_gives_what_was_promised(cluster: HostCluster, before: Machine) -> None:
    started = time.monotonic()
    cluster.start()
    print(f"up in {time.monotonic() - started:.1f} s")

    assert cluster.faults() == []
    assert cluster.nodes == ["node-1", "node-2"]
    assert accelerators(cluster) == ["8", "8"]
    assert cluster.kubectl.run("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1")
    assert "Kubernetes 1." in cluster.status()


def test_up_on_a_cluster_that_is_well_changes_nothing(cluster: HostCluster) -> None:
    components = {name: cluster_pid(cluster, name) for name in cluster.components()}

    cluster.start()

    assert {name: cluster_pid(cluster, name) for name in cluster.components()} == components


def test_an_image_that_is_not_there_fails_at_once_and_says_so(cluster: HostCluster) -> None:
    with pytest.raises(ClusterError, match=r"there is no image archive .*nowhere\.tar"):
        cluster.load_image(Path("nowhere.tar"))


def test_a_shared_volume_is_made_mounted_on_both_nodes_enlarged_and_removed(cluster: HostCluster) -> None:
    kubectl = cluster.kubectl
    spec = {**CLAIM["spec"], "storageClassName": "noctaya-shared"}  # type: ignore[dict-item]
    kubectl.apply([{**CLAIM, "spec": spec}, pod("one", "node-1", "data"), pod("two", "node-2", "data")])
    kubectl.run("wait", "--for=condition=Ready", "pod/one", "pod/two", "--timeout=180s")

    larger = json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    kubectl.run("patch", "pvc", "data", "-p", larger)
    eventually(
        lambda: kubectl.get("pvc", "data")["status"]["capacity"]["storage"] == "2Gi", "the claim has 2Gi"
    )

    (volume,) = kubectl.items("pv")
    folder = Path(volume["spec"]["hostPath"]["path"])
    assert folder.is_dir()
    kubectl.run("delete", "pod/one", "pod/two", "pvc/data")
    eventually(lambda: kubectl.items("pv") == [], "the volume is gone")
    assert not folder.exists()


def test_a_claim_that_a_class_cannot_serve_learns_why(cluster: HostCluster) -> None:
    kubectl = cluster.kubectl
    kubectl.apply([CLAIM, pod("one", "node-1", "data")])

    eventually(
        lambda: "class standard has no ReadWriteMany" in kubectl.run("describe", "pvc", "data"),
        "an event says why",
    )
    kubectl.run("delete", "pod/one", "pvc/data")


def test_within_a_pause_nobody_is_answered_and_after_it_everybody_is(cluster: HostCluster) -> None:
    with cluster.pause_api_server(), pytest.raises(ClusterError, match="no answer within"):
        cluster.kubectl.run("get", "nodes", timeout=3.0)

    assert cluster.kubectl.items("nodes")


def test_up_waits_for_whoever_has_paused_the_api_server(cluster: HostCluster, state: Path) -> None:
    """It is up, and somebody is at work on it: nothing to mend, least of all to remove."""
    made = cluster_pid(cluster, "etcd")
    with ExitStack() as stack:
        with cluster.pause_api_server():
            command = subprocess.Popen(
                UP, env=at(state), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            up = stack.enter_context(command)
            assert up.stderr is not None
            assert "the API server is paused, waiting" in next(up.stderr)
        up.communicate()

    assert up.returncode == 0
    assert cluster_pid(cluster, "etcd") == made


def test_up_goes_on_for_one_who_was_killed_in_a_pause(cluster: HostCluster) -> None:
    pid = cluster_pid(cluster, "kube-apiserver")
    os.kill(pid, signal.SIGSTOP)

    cluster.start()

    assert cluster_pid(cluster, "kube-apiserver") == pid
    assert cluster.faults() == []


def test_what_died_is_started_again_and_nothing_is_lost(cluster: HostCluster) -> None:
    cluster.kubectl.run("create", "configmap", "keep", "--from-literal=a=b")
    for name in ("kube-scheduler", "node-1/kubelet", "node-2/containerd", "kube-apiserver"):
        cluster.stop_component(name)
    assert any("kube-scheduler does not run" in fault for fault in cluster.faults())

    cluster.start()

    assert cluster.faults() == []
    assert cluster.kubectl.get("configmap", "keep")["data"] == {"a": "b"}
    assert accelerators(cluster) == ["8", "8"]


def test_a_report_holds_logs_of_pods_processes_and_machines(cluster: HostCluster, tmp_path: Path) -> None:
    cluster.diagnostics(tmp_path / "report", namespaces=("default",))

    names = {str(file.relative_to(tmp_path / "report")) for file in (tmp_path / "report").rglob("*")}
    assert {"processes/control.kube-apiserver.log", "machines/node-1.txt", "keda/events.txt"} <= names
    assert any(name.startswith("keda/logs/keda-operator-") for name in names)
    assert "KUBE-SERVICES" in (tmp_path / "report" / "machines" / "node-1.txt").read_text()


def test_down_leaves_the_machine_as_it_was(cluster: HostCluster, state: Path, before: Machine) -> None:
    cluster.stop()

    assert traces(state) == []
    ours = {
        name: change
        for name, change in Machine.now().changes(before).items()
        if name in {"rules", "settings"} or not others(change)
    }
    assert ours == {}


@pytest.mark.parametrize("reached", ["machines and links", "API server", "containerd and images"])
def test_down_after_kill_9_halfway_leaves_nothing(cluster: HostCluster, state: Path, reached: str) -> None:
    with subprocess.Popen(
        UP, env=at(state), stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL
    ) as up:
        assert up.stderr is not None
        seen = next(line for line in up.stderr if reached in line)
        assert seen
        up.send_signal(signal.SIGKILL)
        assert up.wait() == -signal.SIGKILL
    assert traces(state) != []

    cluster.stop()

    assert traces(state) == []


def at(state: Path) -> dict[str, str]:
    """The environment of a command for this cluster."""
    return {**os.environ, "NOCTAYA_CLUSTER_STATE": str(state)}


def accelerators(cluster: HostCluster) -> list[str]:
    """What the nodes say that they can give."""
    return [node["status"]["allocatable"]["noctaya.io/fake-gpu"] for node in cluster.kubectl.items("nodes")]


def cluster_pid(cluster: HostCluster, name: str) -> int:
    """Of a component."""
    file = name.replace("/", ".") if "/" in name else f"control.{name}"
    text = (cluster.kubeconfig.parent / "processes" / f"{file}.json").read_text()
    return int(json.loads(text)["pid"])


def others(change: object) -> bool:
    """Whether every difference is of another cluster or engine that came or went meanwhile."""
    assert isinstance(change, frozenset)
    marks = ("noctaya-", "10.200.", "10.208.", "10.216.", "docker", "veth", "br-")
    return all(any(mark in each for mark in marks) for each in change)
