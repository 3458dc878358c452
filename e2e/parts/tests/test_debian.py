"""Debian packages: taken as they are, installed only when something is missing, without side effects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from noctaya_parts.debian import Debian, PackagesMissing


class Apt:
    """Stands in for apt-get and dpkg-query: what it was asked, what programs there are."""

    def __init__(self, *programs: str, policy: Path) -> None:
        self.programs = {"apt-get", "dpkg-query", *programs}
        self.asked: list[list[str]] = []
        self.fails = 0
        self.brings: set[str] = set()
        self.policy = policy
        self.policies: list[int] = []
        """What the policy said at each installation."""

    def find(self, program: str) -> str | None:
        return program if program in self.programs else None

    def __call__(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(list(argv))
        if argv[0] == "dpkg-query":
            known = argv[-1] in self.programs
            return subprocess.CompletedProcess(argv, 0 if known else 1, "installed" if known else "", "")
        if argv[1] == "install":
            self.policies.append(subprocess.run([self.policy], check=False).returncode)
            if self.fails:
                self.fails -= 1
                return subprocess.CompletedProcess(argv, 100, "", "E: Unable to locate package runc\n")
            self.programs |= self.brings
        return subprocess.CompletedProcess(argv, 0, "", "")

    @property
    def verbs(self) -> list[str]:
        return [argv[1] for argv in self.asked if argv[0] == "apt-get"]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy-rc.d"


def debian(apt: Apt, *, root: bool = True) -> Debian:
    return Debian(run=apt, root=root, policy=apt.policy, find=apt.find)


def quiet(line: str) -> None:
    assert line


def test_what_is_there_is_left_alone_whatever_package_brought_it(policy: Path) -> None:
    apt = Apt("dockerd", "runc", policy=policy)
    debian(apt, root=False).ensure(["docker.io", "runc"], report=quiet)
    assert apt.verbs == []


def test_what_is_missing_is_installed_without_removing_anything_or_starting_a_service(policy: Path) -> None:
    apt = Apt("runc", policy=policy)
    apt.brings = {"dockerd"}
    debian(apt).ensure(["docker.io", "runc"], report=quiet)
    (install,) = apt.asked
    assert install[-1] == "docker.io"
    assert "runc" not in install
    assert "--no-remove" in install
    assert apt.policies == [101]
    assert not policy.exists()


def test_old_lists_are_updated_once(policy: Path) -> None:
    apt = Apt(policy=policy)
    apt.fails, apt.brings = 1, {"runc"}
    debian(apt).ensure(["runc"], report=quiet)
    assert apt.verbs == ["install", "update", "install"]


def test_a_failure_is_told_in_apts_words_and_leaves_no_policy(policy: Path) -> None:
    apt = Apt(policy=policy)
    apt.fails = 2
    with pytest.raises(PackagesMissing, match=r"apt-get install runc: E: Unable to locate package runc"):
        debian(apt).ensure(["runc"], report=quiet)
    assert not policy.exists()


def test_a_machines_own_policy_is_kept(policy: Path) -> None:
    policy.write_text("#!/bin/sh\nexit 7\n")
    policy.chmod(0o755)
    apt = Apt(policy=policy)
    apt.brings = {"runc"}
    debian(apt).ensure(["runc"], report=quiet)
    assert apt.policies == [7]
    assert policy.exists()


def test_a_policy_left_by_one_that_was_killed_forbids_nothing(policy: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    apt = Apt(policy=policy)
    with debian(apt)._no_service_starts():
        policy.write_text(policy.read_text().replace(str(os.getpid()), str(gone.pid)))
        assert subprocess.run([policy], check=False).returncode == 0


def test_without_root_the_error_is_the_command_to_run(policy: Path) -> None:
    apt = Apt("runc", policy=policy)
    with pytest.raises(PackagesMissing, match=r"sudo apt-get install containerd ipset$"):
        debian(apt, root=False).ensure(["containerd", "runc", "ipset"], report=quiet)
    assert apt.verbs == []


def test_without_apt_the_error_names_programs_and_packages(policy: Path) -> None:
    apt = Apt(policy=policy)
    apt.programs.clear()
    with pytest.raises(PackagesMissing, match=r"missing: dockerd, modprobe.*docker\.io kmod"):
        debian(apt).ensure(["docker.io", "kmod"], report=quiet)


def test_a_package_that_brings_not_what_is_used_of_it_is_an_error(policy: Path) -> None:
    with pytest.raises(PackagesMissing, match="conntrack is not where it belongs"):
        debian(Apt(policy=policy)).ensure(["conntrack"], report=quiet)


def test_a_package_of_which_no_program_is_known_is_looked_up_by_name(policy: Path) -> None:
    apt = Apt("tzdata", policy=policy)
    assert debian(apt).missing(["tzdata", "locales"]) == ["locales"]
