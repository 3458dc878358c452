"""Finding cgroup hierarchies, and cgroups as folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_cluster.host.cgroups import Cgroup, Hierarchy, hierarchies

HYBRID = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
99 31 0:29 / /var/again/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
"""
UNIFIED = """\
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
"""


def test_every_hierarchy_of_a_mix_of_versions_is_found_once() -> None:
    assert hierarchies(HYBRID) == [
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), "cgroup", "cpu,cpuacct"),
        Hierarchy(Path("/sys/fs/cgroup/systemd"), "cgroup", "xattr,name=systemd"),
        Hierarchy(Path("/sys/fs/cgroup/unified"), "cgroup2", ""),
    ]


def test_pure_version_2_is_one_hierarchy() -> None:
    assert hierarchies(UNIFIED) == [Hierarchy(Path("/sys/fs/cgroup"), "cgroup2", "")]


def test_a_new_cpuset_of_version_1_has_the_processors_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    for folder, text in ((tmp_path, "0-1\n"), (tmp_path / "ours", "\n")):
        (folder / "cpuset.cpus").write_text(text)
        (folder / "cpuset.mems").write_text(text.replace("0-1", "0"))

    Cgroup("ours", [Hierarchy(tmp_path, "cgroup", "cpuset")]).create()

    assert (tmp_path / "ours" / "cpuset.cpus").read_text() == "0-1"
    assert (tmp_path / "ours" / "cpuset.mems").read_text() == "0"


@pytest.mark.parametrize("mixed", [False, True])
def test_version_2_hands_down_controllers_only_where_it_has_them(tmp_path: Path, *, mixed: bool) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory rdma\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    others = [Hierarchy(tmp_path / "v1", "cgroup", "cpu")] if mixed else []
    (tmp_path / "v1").mkdir()

    Cgroup("ours", [Hierarchy(tmp_path, "cgroup2", ""), *others]).create()

    written = (tmp_path / "cgroup.subtree_control").read_text()
    assert written == ("memory\n" if mixed else "+cpu")


@pytest.mark.parametrize(("name", "written"), [("cpu.shares", "10240"), ("cpu.weight", "1000")])
def test_a_cluster_counts_as_many_processes_not_as_one(tmp_path: Path, name: str, written: str) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / name).write_text("its default")

    Cgroup("ours", [Hierarchy(tmp_path, "cgroup", "cpu")]).weigh(10)

    assert (tmp_path / "ours" / name).read_text() == written
    assert len(list((tmp_path / "ours").iterdir())) == 1


def test_processes_are_found_in_every_hierarchy_and_at_every_depth(tmp_path: Path) -> None:
    for name, pids in (("a/ours", "1\n2\n"), ("a/ours/node/programs", "3\n"), ("b/ours/node", "4\n")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text(pids)
    (tmp_path / "a" / "cgroup.procs").write_text("99\n")

    cgroup = Cgroup("ours", [Hierarchy(tmp_path / each, "cgroup", each) for each in "ab"])

    assert cgroup.pids() == {1, 2, 3, 4}


def test_removing_removes_every_folder_and_nothing_beside_them(tmp_path: Path) -> None:
    (tmp_path / "ours" / "node" / "programs").mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    cgroup = Cgroup("ours", [Hierarchy(tmp_path, "cgroup", "cpu")])

    cgroup.remove()
    cgroup.remove()  # nothing to do is no error

    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]
