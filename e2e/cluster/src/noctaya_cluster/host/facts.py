"""What a machine of the cluster looks like from inside, for reports about faults."""

from __future__ import annotations

from typing import Final

from ..errors import ClusterError
from .machines import Machine

QUESTIONS: Final = (
    ["ip", "address"],
    ["ip", "route"],
    ["iptables-save", "-c"],
    ["ipset", "list", "-terse"],
    ["cat", "/proc/mounts"],
    ["cat", "/proc/meminfo"],
    ["cat", "/proc/loadavg"],
    ["df", "-h", "/"],
    ["dmesg", "--ctime", "--level=err,warn"],
)


def facts(machine: Machine) -> str:
    """Network, mounts, memory, the kernel's complaints; a question that fails is answered with why."""
    said = []
    for question in QUESTIONS:
        try:
            answer = machine.run(question)
        except ClusterError as error:
            answer = str(error)
        said.append(f"$ {' '.join(question)}\n{answer}")
    return "\n".join(said)
