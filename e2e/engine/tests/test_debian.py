"""What dpkg's records say, and what a set of packages needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from noctaya_engine.debian import closure, files_of, parse_status

STATUS = """\
Package: server
Status: install ok installed
Architecture: amd64
Source: server-source (1.0)
Version: 1.0-2
Pre-Depends: libc6 (>= 2.36)
Depends: mail-reader | pager, scripts,
 library:any (>= 3~), tls-provider
Description: A server
 with more to say

Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9

Package: pager
Status: install ok installed
Architecture: all
Version: 1

Package: library
Status: install ok installed
Architecture: amd64
Version: 3.1
Depends: libc6

Package: openssl-like
Status: install ok installed
Architecture: amd64
Version: 3
Provides: tls-provider (= 3), other

Package: scripts
Status: install ok installed
Architecture: all
Version: 5
Depends: shell

Package: shell
Status: install ok installed
Architecture: amd64
Version: 5

Package: removed
Status: deinstall ok config-files
Architecture: amd64
Version: 9
"""


def test_only_installed_packages_are_there() -> None:
    packages = parse_status(STATUS)
    assert "removed" not in packages
    assert packages["server"].version == "1.0-2"
    assert packages["server"].source == "server-source"
    assert packages["pager"].source == "pager"


def test_a_stanza_of_a_file_without_a_status_counts_as_installed() -> None:
    assert parse_status("Package: one\nVersion: 2\n")["one"].version == "2"


def test_the_closure_takes_installed_alternatives_and_providers() -> None:
    found = closure(parse_status(STATUS), ["server"])
    assert [package.name for package in found] == [
        "libc6",
        "library",
        "openssl-like",
        "pager",
        "scripts",
        "server",
        "shell",
    ]


def test_what_has_no_use_at_run_time_takes_its_own_needs_along() -> None:
    found = closure(parse_status(STATUS), ["server"], without=frozenset({"scripts"}))
    assert {"scripts", "shell"} & {package.name for package in found} == set()


def test_a_root_that_is_not_installed_is_an_error_with_its_name() -> None:
    with pytest.raises(KeyError, match="removed"):
        closure(parse_status(STATUS), ["removed"])


def test_the_files_of_a_package_are_found_with_and_without_its_architecture(tmp_path: Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info / "libc6:amd64.list").write_text("/.\n/usr\n/usr/lib/libc.so.6\n")
    (info / "pager.list").write_text("/.\n/usr/bin/pager\n")
    packages = parse_status(STATUS)
    assert files_of(tmp_path, packages["libc6"]) == [Path("usr"), Path("usr/lib/libc.so.6")]
    assert files_of(tmp_path, packages["pager"]) == [Path("usr/bin/pager")]
