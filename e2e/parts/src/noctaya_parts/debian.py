"""What is taken from Debian instead of being built: container runtime, CNI plugins, packet filter.

Nothing that is installed is changed or removed, and no service is started: the daemons that tests need are
started by whoever needs them, with folders of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .locking import locked

PROGRAMS: Final = {
    "conntrack": "conntrack",
    "containerd": "containerd",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "debootstrap": "debootstrap",
    "docker.io": "dockerd",
    "ipset": "ipset",
    "iptables": "iptables",
    "kmod": "modprobe",
    "nginx-light": "nginx",
    "runc": "runc",
    "wrk": "wrk",
}
"""What of a package is used. A machine that has it by another package (Docker's own, say) needs no other."""
SEARCHED: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Beside PATH, which of ordinary users often lacks them."""
POLICY: Final = Path("/usr/sbin/policy-rc.d")
"""Asked by Debian's maintainer scripts before they start a service; 101 forbids it."""
MARK: Final = "# by noctaya_parts:"
LOCK_SECONDS: Final = 300
"""How long apt waits for another apt."""

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class PackagesMissing(Exception):
    """Packages are not there and could not be installed; the message says how to get them."""


class Debian:
    """The packages of this machine. Root, commands and paths are passed in by tests alone."""

    def __init__(
        self,
        *,
        run: Run | None = None,
        root: bool | None = None,
        policy: Path = POLICY,
        find: Callable[[str], str | None] | None = None,
    ) -> None:
        self._run = run or _run
        self._root = os.geteuid() == 0 if root is None else root
        self._policy = policy
        self._find = find or _find

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those of the packages that are not here, by what is used of them."""
        return [name for name in dict.fromkeys(names) if not self._there(name)]

    def ensure(self, names: Sequence[str], *, report: Callable[[str], None]) -> None:
        """Install what is missing. Raises PackagesMissing."""
        missing = self.missing(names)
        if not missing:
            return
        if self._find("apt-get") is None:
            programs = ", ".join(PROGRAMS.get(name, name) for name in missing)
            raise PackagesMissing(
                f"missing: {programs}. They come with Debian's packages {' '.join(missing)}; "
                "this system has no apt-get: install what corresponds to them"
            )
        if not self._root:
            raise PackagesMissing(f"missing; please run: sudo apt-get install {' '.join(missing)}")
        lock = Path(tempfile.gettempdir()) / "noctaya-apt.lock"
        with locked(lock, waiting=lambda: report("another installation is running, waiting for it")):
            missing = self.missing(names)
            if missing:
                report(f"installing {' '.join(missing)}")
                self._install(missing)
        if still := self.missing(names):
            raise PackagesMissing(
                f"apt-get has installed {' '.join(still)}, but "
                f"{', '.join(PROGRAMS.get(name, name) for name in still)} is not where it belongs"
            )

    def _there(self, name: str) -> bool:
        if program := PROGRAMS.get(name):
            return self._find(program) is not None
        if self._find("dpkg-query") is None:
            return False
        said = self._run(["dpkg-query", "--show", "--showformat=${db:Status-Status}", name])
        return said.returncode == 0 and said.stdout.strip() == "installed"

    def _install(self, names: Sequence[str]) -> None:
        # --no-remove: a Docker from elsewhere must not have to go for ours.
        install = [
            "apt-get",
            "install",
            "--yes",
            "--quiet",
            "--no-remove",
            "--no-install-recommends",
            f"--option=DPkg::Lock::Timeout={LOCK_SECONDS}",
            *names,
        ]
        with self._no_service_starts():
            done = self._run(install)
            if done.returncode != 0:  # as a rule because the lists are old, or none
                updated = self._run(["apt-get", "update", "--quiet"])
                done = self._run(install) if updated.returncode == 0 else updated
        if done.returncode != 0:
            words = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
            raise PackagesMissing(f"apt-get install {' '.join(names)}: {words}")

    @contextmanager
    def _no_service_starts(self) -> Iterator[None]:
        """Have maintainer scripts start nothing, unless this machine has a policy of its own."""
        if self._policy.exists() and MARK not in self._policy.read_text():
            yield
            return
        # It ends with us: should we be killed, what is left behind forbids nothing.
        self._policy.write_text(
            f"#!/bin/sh\n{MARK} no service starts while process {os.getpid()} installs packages\n"
            f"kill -0 {os.getpid()} 2>/dev/null && exit 101\nexit 0\n"
        )
        self._policy.chmod(0o755)
        try:
            yield
        finally:
            self._policy.unlink(missing_ok=True)


def ensure_packages(*names: str, report: Callable[[str], None] = print) -> None:
    """Have these Debian packages, or what else on this machine gives the same programs.

    Missing ones are installed as root; no service is started, nothing installed is removed.

    Raises:
        PackagesMissing: not root, no apt-get, or it failed; the message names the packages.
    """
    Debian().ensure(names, report=report)


def _find(program: str) -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SEARCHED])
    return shutil.which(program, path=path)


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(
        argv, env=env, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
