"""Processes that outlive the command that started them, and records on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from noctaya_cluster.errors import ClusterError
from noctaya_cluster.host.bringup import other_versions, unusable, wanted_versions
from noctaya_cluster.host.cgroups import Cgroup, Hierarchy
from noctaya_cluster.host.clean import mounts_below
from noctaya_cluster.host.layout import Layout
from noctaya_cluster.host.machines import Machine, Process, environment, last_words
from noctaya_cluster.host.parts import Parts
from noctaya_cluster.host.record import Record
from noctaya_cluster.host.requirements import missing_controllers

RECORD = Record(block=200, snapshotter="overlayfs", versions={"Kubernetes": "1.34.4"})


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_process_is_told_from_a_later_one_with_its_pid() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        same, other = Process(child.pid, started(child.pid)), Process(child.pid, "1")

        assert same.running
        assert not other.running
        other.signal(signal.SIGKILL)  # reaches nobody
        assert same.running
        same.signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert not same.running


FIRST_THREAD_ENDS = """
import ctypes, threading
threading.Thread(target=input).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_lives_as_long_as_one_of_its_threads_since_its_ports_do() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdin=subprocess.PIPE) as child:
        process = Process(child.pid, started(child.pid))
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            os.sched_yield()
        assert process.running
        process.signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert not process.running


def test_a_process_that_was_stopped_is_known_as_such() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = Process(child.pid, started(child.pid))
        assert not process.stopped

        process.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert process.stopped
        assert process.running
        assert not Process(child.pid, "1").stopped

        child.kill()


def test_nothing_of_the_callers_environment_reaches_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://example.com")

    assert set(environment()) == {"PATH", "HOME", "LANG"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    layout = Layout(tmp_path / "state")
    layout.processes.mkdir(parents=True)
    cgroup = Cgroup("ours", [Hierarchy(tmp_path / "cgroup", "cgroup2", "")])
    return Machine("node-1", layout=layout, cgroup=cgroup)


def test_a_machine_that_is_gone_is_never_entered(machine: Machine, tmp_path: Path) -> None:
    """The pid of its holder may be anybody's by now."""
    file = tmp_path / "state" / "processes" / "node-1.machine.json"
    file.write_text('{"pid": 1, "started": "not that of pid 1", "argv": []}')

    with pytest.raises(ClusterError, match="machine node-1 is gone"):
        machine.run(["true"])


def test_a_process_that_never_was_is_named(machine: Machine) -> None:
    with pytest.raises(ClusterError, match="node-1 has no process kubelet"):
        machine.process("kubelet")


def test_the_machine_itself_is_not_among_its_programs(machine: Machine, tmp_path: Path) -> None:
    for name in ("node-1.machine", "node-1.kubelet", "node-1.kube-proxy", "node-2.kubelet"):
        (tmp_path / "state" / "processes" / f"{name}.json").write_text("{}")

    assert machine.programs() == ["kube-proxy", "kubelet"]


def test_what_was_decided_is_read_back(tmp_path: Path) -> None:
    RECORD.write(tmp_path / "cluster.json")

    assert Record.read(tmp_path / "cluster.json") == RECORD
    assert RECORD.addresses.control == "10.200.0.1"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"block": 200}'])
def test_a_record_that_was_cut_off_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)

    assert Record.read(tmp_path / "cluster.json") is None


def test_a_cluster_of_other_versions_is_not_taken_for_one_of_today() -> None:
    wanted = wanted_versions()

    assert other_versions(wanted, wanted) == []
    assert other_versions({}, wanted) == []  # what it does not say it can't have wrong
    assert other_versions({**wanted, "KEDA": "2.0.0"}, wanted) == [
        f"its KEDA is 2.0.0, {wanted['KEDA']} is wanted"
    ]


def test_what_a_killed_up_left_is_of_no_use(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    assert unusable(layout) == "it was never complete"

    layout.processes.mkdir(parents=True)
    layout.kubeconfig.touch()
    RECORD.write(layout.record)
    assert unusable(layout) == "its machines are gone"


def test_asking_about_no_cluster_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"there is no cluster in .*noctaya_cluster up"):
        Parts.of(Layout(tmp_path / "none"))


def test_mounts_below_a_folder_are_found_and_those_beside_it_not() -> None:
    mountinfo = (
        "1 0 0:1 / / rw - ext4 a rw\n"
        "2 1 0:1 / /state/machines/x rw - tmpfs a rw\n"
        "3 1 0:1 / /state\\040two rw - tmpfs a rw\n"
        "4 1 0:1 / /statement rw - tmpfs a rw\n"
    )

    assert mounts_below(Path("/state"), mountinfo) == ["/state/machines/x"]
    assert mounts_below(Path("/state two"), mountinfo) == ["/state two"]


def test_cgroup_controllers_that_the_kernel_lacks_are_named(tmp_path: Path) -> None:
    table = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t2\t1\t1\nmemory\t4\t1\t0\npids\t5\t1\t1\n"

    assert missing_controllers(table, tmp_path / "none") == [
        "the cgroup controller cpuset",
        "the cgroup controller memory",
    ]
    unified = tmp_path / "cgroup.controllers"
    unified.write_text("cpuset cpu io memory pids\n")
    assert missing_controllers(table, unified) == []


def test_last_words_are_the_end_of_a_log_and_never_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(f"line {number}" for number in range(5000)))

    assert last_words(log, 2) == "line 4998\nline 4999"
    assert last_words(tmp_path / "none") == ""
