"""One machine of the cluster without a cluster: what is its own, and what is not."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine_state import Machine as ThisMachine
from machine_state import traces
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.host.clean import clean
from noctaya_cluster.host.layout import Layout
from noctaya_cluster.host.machines import Machine
from noctaya_cluster.host.parts import Parts
from noctaya_cluster.host.record import Record


@pytest.fixture(params=["/tmp", "/var/lib", "/run"])
def layout(request: pytest.FixtureRequest) -> Iterator[Layout]:
    """A state folder: where a machine sees what is there, what is covered, what is its own."""
    with tempfile.TemporaryDirectory(dir=request.param, prefix="noctaya-machines-") as folder:
        layout = Layout(Path(folder) / "state")
        for needed in (layout.logs, layout.processes):
            needed.mkdir(parents=True)
        yield layout
        clean(layout)


@pytest.fixture
def node(layout: Layout) -> Machine:
    """A node's namespaces, nothing in them yet."""
    record = Record(block=200, snapshotter="overlayfs", versions={})
    record.write(layout.record)
    node = Parts(layout, record).nodes[0]
    node.start()
    return node


def test_what_must_last_is_on_disk_wherever_the_state_folder_is(node: Machine, layout: Layout) -> None:
    files = ("/var/lib/kubelet/pods", "/var/log/pods", f"{layout.state}/volumes")

    node.run(["mkdir", *files])

    for folder in (node.folder / "kubelet" / "pods", node.folder / "log" / "pods", layout.volumes):
        assert folder.is_dir()


def test_nothing_else_reaches_this_machine(node: Machine) -> None:
    before = ThisMachine.now()

    node.run(["mkdir", "/var/lib/noctaya-trial", "/run/noctaya-trial", "/var/log/noctaya-trial"])
    node.run(["mount", "-t", "tmpfs", "none", "/var/lib/noctaya-trial"])
    node.run(["ip", "link", "add", "noctaya-trial", "type", "bridge"])
    node.run(["iptables", "-A", "OUTPUT", "-d", "192.0.2.99", "-j", "REJECT"])
    node.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 9 > /proc/sys/kernel/panic"])

    assert not any("noctaya-trial" in str(change) for change in ThisMachine.now().changes(before).values())
    assert "192.0.2.99" not in ThisMachine.now().rules
    assert ThisMachine.now().settings == before.settings


def test_it_has_a_name_and_a_cgroup_tree_of_its_own(node: Machine) -> None:
    assert node.run(["hostname"]).strip() == "node-1"
    seen = node.run(["cat", "/proc/self/cgroup"])
    assert all(line.endswith(":/programs") for line in seen.split())


def test_kubelet_finds_the_kernel_as_it_wants_it(node: Machine) -> None:
    assert node.run(["cat", "/proc/sys/vm/overcommit_memory"]) == "1\n"


def test_what_is_started_while_it_is_removed_ends_by_itself(node: Machine, layout: Layout) -> None:
    late = node.enter(["sleep", "600"])  # the command line is made in time and run too late
    clean(layout)

    done = subprocess.run(late, capture_output=True, text=True, check=False, timeout=30)

    assert done.returncode != 0
    assert "FileNotFoundError" in done.stderr
    assert traces(layout.state) == []
    with pytest.raises(ClusterError, match="has no process"):
        node.run(["true"])


def test_removing_ends_what_left_its_session_and_its_parent(node: Machine, layout: Layout) -> None:
    node.run(["sh", "-c", "setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 &"])
    assert traces(layout.state) != []

    clean(layout)

    assert traces(layout.state) == []
