"""What this machine must have for a host cluster, each missing thing named with its remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from noctaya_parts.debian import PackagesMissing, ensure_packages

from ..errors import ClusterError
from ..provider import Report
from .layout import Layout
from .machines import environment
from .node import CNI_PLUGINS

PACKAGES: Final = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "iptables",
    "conntrack",
    "ipset",
    "kmod",
)
NAMESPACES: Final = ("cgroup", "mnt", "net", "uts")
CONTROLLERS: Final = ("cpu", "cpuset", "memory", "pids")
FREE_BYTES: Final = 4 * 2**30
"""Images twice, logs and volumes; measured 1.6 GiB after start."""
TRIAL: Final = (
    ("a bridge", "ip link add noctaya-b type bridge"),
    ("virtual network links (veth)", "ip link add noctaya-v type veth peer name noctaya-w"),
    (
        "the netfilter of bridges (module br_netfilter)",
        "test -e /proc/sys/net/bridge/bridge-nf-call-iptables || modprobe br_netfilter",
    ),
    ("iptables with REJECT", "iptables -A OUTPUT -d 192.0.2.99 -j REJECT"),
    (
        "iptables with DNAT",
        "iptables -t nat -A OUTPUT -d 192.0.2.99 -p tcp -j DNAT --to-destination 192.0.2.98",
    ),
    ("iptables with conntrack", "iptables -A OUTPUT -d 192.0.2.99 -m conntrack --ctstate NEW -j ACCEPT"),
    ("iptables with comment", "iptables -A OUTPUT -d 192.0.2.99 -m comment --comment x -j ACCEPT"),
    (
        "iptables with statistic",
        "iptables -A OUTPUT -d 192.0.2.99 -m statistic --mode random --probability 0.5 -j ACCEPT",
    ),
    ("ipset", "ipset create noctaya-s hash:ip"),
    ("iptables with set", "iptables -A OUTPUT -m set --match-set noctaya-s dst -j ACCEPT"),
)
"""Tried in a network namespace of their own, which takes all of it along."""


def check_rights() -> None:
    """Raises ClusterError when this is not root on Linux."""
    lacks = missing_rights()
    if lacks:
        raise ClusterError(f"the host provider needs {' and '.join(lacks)}")


def missing_rights() -> list[str]:
    """What is lacking from the outset; empty when a host cluster may be tried."""
    lacks = []
    if sys.platform != "linux":
        return ["Linux"]
    if os.geteuid() != 0:
        lacks.append("root (sudo)")
    lacks += [
        f"the kernel's {kind} namespaces" for kind in NAMESPACES if not Path(f"/proc/self/ns/{kind}").exists()
    ]
    return lacks


def check(layout: Layout, *, report: Report = print) -> None:
    """Install Debian's packages where missing, try the kernel. Raises ClusterError with all it lacks."""
    try:
        ensure_packages(*PACKAGES, report=report)
    except PackagesMissing as error:
        raise ClusterError(str(error)) from error
    lacks = [f"{program} (package iproute2)" for program in ("ip",) if shutil.which(program) is None]
    if not (CNI_PLUGINS / "bridge").exists():
        lacks.append(f"CNI plugins in {CNI_PLUGINS} (package containernetworking-plugins)")
    lacks += missing_controllers(Path("/proc/cgroups").read_text(), Path("/sys/fs/cgroup/cgroup.controllers"))
    lacks += _failed_trials()
    layout.state.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(layout.state).free
    if free < FREE_BYTES:
        lacks.append(f"{FREE_BYTES / 2**30:g} GiB of disk for {layout.state} ({free / 2**30:.1f} free)")
    if lacks:
        raise ClusterError("this machine lacks: " + "; ".join(lacks))


def missing_controllers(cgroups: str, unified: Path) -> list[str]:
    """cgroup controllers that kubelet wants and the kernel has not enabled.

    Args:
        cgroups: /proc/cgroups.
        unified: cgroup.controllers of a pure version 2, where it counts.
    """
    if unified.exists():
        enabled = set(unified.read_text().split())
    else:
        rows = (line.split() for line in cgroups.splitlines() if not line.startswith("#"))
        enabled = {row[0] for row in rows if row[3] == "1"}
    return [f"the cgroup controller {name}" for name in CONTROLLERS if name not in enabled]


def snapshotter(state: Path) -> str:
    """`overlayfs` where the disk of the state folder can be the upper layer, else `native`, which copies."""
    with tempfile.TemporaryDirectory(dir=state, prefix=".overlay-") as folder:
        names = ("lower", "upper", "work", "merged")
        lower, upper, work, merged = (Path(folder) / name for name in names)
        for each in (lower, upper, work, merged):
            each.mkdir()
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        argv = ["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options, str(merged)]
        done = subprocess.run(argv, capture_output=True, env=environment(), check=False)
    return "overlayfs" if done.returncode == 0 else "native"


def _failed_trials() -> list[str]:
    """Those of the kernel's abilities that do not work, tried in namespaces that vanish."""
    script = "\n".join(f"({command}) >/dev/null 2>&1 || echo '{name}'" for name, command in TRIAL)
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", f"ip link set lo up\n{script}"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    if done.returncode != 0:
        return [f"the right to make namespaces ({done.stderr.strip()})"]
    return [f"of the kernel: {name}" for name in done.stdout.splitlines()]
