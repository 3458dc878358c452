"""What of this machine a cluster could leave a trace in."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from noctaya_cluster.host.layout import Layout


@dataclass(frozen=True)
class Machine:
    """Links, routes, rules, mounts, kernel settings and common folders of this machine."""

    links: frozenset[str]
    routes: frozenset[str]
    rules: str
    mounts: frozenset[str]
    settings: str
    folders: frozenset[str]

    @classmethod
    def now(cls) -> Machine:
        """As it is."""
        links = (line.split(":")[1] for line in _say("ip", "-oneline", "link").splitlines())
        rules = (line for line in _say("iptables-save").splitlines() if not line.startswith("#"))
        counted = "\n".join(line.partition(" [")[0] for line in rules)
        mounts = (line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
        places = (
            "/var/lib",
            "/run",
            "/var/log",
            "/etc/cni",
            "/opt",
            "/var/run/netns",
            "/usr/libexec/kubernetes",
        )
        folders = (str(child) for place in places for child in _children(Path(place)))
        return cls(
            links=frozenset(links),
            routes=frozenset(_say("ip", "route", "show", "table", "all").splitlines()),
            rules=counted,
            mounts=frozenset(mounts),
            settings=_say(
                "sysctl", "vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "net.ipv4.ip_forward"
            ),
            folders=frozenset(folders),
        )

    def changes(self, since: Machine) -> dict[str, object]:
        """What is there now and was not then, or the other way round; what others did meanwhile included."""
        found: dict[str, object] = {}
        for name in ("links", "routes", "mounts", "folders"):
            if getattr(self, name) != getattr(since, name):
                found[name] = getattr(self, name) ^ getattr(since, name)
        for name in ("rules", "settings"):
            if getattr(self, name) != getattr(since, name):
                found[name] = (getattr(since, name), getattr(self, name))
        return found


def traces(state: Path) -> list[str]:
    """What of a cluster is on this machine."""
    layout = Layout(state)
    found = [str(state)] if state.exists() else []
    found += [str(folder) for folder in Path("/sys/fs/cgroup").glob(f"**/{layout.cgroup}")]
    found += [line for line in _say("ip", "-oneline", "link").splitlines() if layout.link in line]
    found += [
        line for line in _say("ip", "route", "show", "table", "all").splitlines() if layout.link in line
    ]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "mountinfo").read_bytes()
        except (FileNotFoundError, ProcessLookupError, OSError):  # it ended
            continue
        if str(state).encode() in told and int(process.name) != os.getpid():
            found.append(f"process {process.name}: {told[:200]!r}")
    return found


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _say(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
