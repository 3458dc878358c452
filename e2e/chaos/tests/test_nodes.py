"""Nodes: a file system that is filled to its last byte, a kubelet found among processes, other settings."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_chaos.filling import PRESSURE, volume
from noctaya_chaos.nodes import Node, NoSuchNode, SmallDisk, until_full

CALM = settings(max_examples=60, deadline=None, derandomize=True)
READY = {"type": "Ready", "status": "True"}


class Kubectl:
    """Tells of nodes."""

    def __init__(self) -> None:
        self.conditions: list[dict[str, str]] = [READY]

    def items(self, kind: str) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "node-1"}, "status": {"conditions": self.conditions}}]


class Cluster:
    """A host cluster's folder, and what was done to its components."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.kubectl = Kubectl()
        self.config = folder / "kubelet.yaml"
        self.config.write_text("evictionHard: {memory.available: 50Mi}\nsyncFrequency: 10s\n")
        self.started: list[dict[str, Any]] = []

    def stop_component(self, name: str) -> None:
        assert name == "node-1/kubelet"

    def start_component(self, name: str) -> None:
        self.started.append(yaml.safe_load(self.config.read_text()))


@contextmanager
def kubelet(cluster: Cluster, name: str) -> Iterator[int]:
    """A process with the command line of a node's kubelet."""
    credential = cluster.kubeconfig.parent / "pki" / f"{name}.kubeconfig"
    program = cluster.kubeconfig.parent / "kubelet"
    if not program.exists():
        program.symlink_to(sys.executable)
    script = "import sys; print('ready', flush=True); sys.stdin.read()"
    argv = [str(program), "-c", script, f"--config={cluster.config}", f"--kubeconfig={credential}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            yield child.pid
        finally:
            child.communicate("")


def node(cluster: Cluster, name: str = "node-1") -> Node:
    return Node(cluster, name)  # type: ignore[arg-type]


def test_the_kubelet_of_a_node_is_found_by_its_credential_with_its_configuration(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with kubelet(cluster, "node-2"), kubelet(cluster, "node-1") as pid:
        assert node(cluster).kubelet == (pid, cluster.config)
    with pytest.raises(NoSuchNode, match="node-1"):
        _ = node(cluster).kubelet


def test_settings_hold_within_the_block_only_and_the_kubelet_is_started_for_both(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    before = cluster.config.read_text()
    with kubelet(cluster, "node-1"), pytest.raises(ZeroDivisionError), node(cluster).configured(PRESSURE):
        raise ZeroDivisionError
    assert cluster.config.read_text() == before
    pressed, back = cluster.started
    assert pressed == {**yaml.safe_load(before), **PRESSURE}
    assert back == yaml.safe_load(before)


def test_pressure_is_what_the_node_says(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert node(cluster).unpressed()
    cluster.kubectl.conditions = [READY, {"type": "DiskPressure", "status": "True"}]
    assert node(cluster).pressed()
    assert not node(cluster).unpressed()
    cluster.kubectl.conditions = []
    assert not node(cluster).unpressed()


@CALM
@given(st.integers(0, 5 << 20), st.integers(1 << 12, 1 << 20))
def test_a_disk_is_filled_to_the_last_byte_whatever_a_write_takes(room: int, at_most: int) -> None:
    left = room

    def write(data: memoryview) -> int:
        nonlocal left
        taken = min(left, at_most, len(data))
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= taken
        return taken

    assert until_full(write) == room
    assert left == 0


def test_what_keeps_a_disk_from_being_filled_is_an_error() -> None:
    def write(data: memoryview) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        until_full(write)


def test_the_filler_is_written_where_the_node_sees_it_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "disk"
    folder.mkdir(parents=True)
    disk = SmallDisk(Path("/run/disk"), root=tmp_path)
    disk.filler.symlink_to("/dev/full")
    assert disk.fill() == 0
    disk.free()
    assert list(folder.iterdir()) == []


def test_the_volume_is_a_folder_of_one_node() -> None:
    made = volume("team", node="node-1", path="/run/disk")
    assert made["spec"]["hostPath"]["path"] == "/run/disk"
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["node-1"]
    assert made["metadata"]["name"].endswith("team"), "volumes have no namespace, so its name says it"
