"""Free loopback ports, from below those that the kernel hands out by itself.

Neither etcd nor the API server can be told to choose a port. A port that another process gets by binding 0,
or for a connection it makes, comes from the kernel's range; one from below stays ours between looking and
starting, and while the API server is restarted.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

LOWEST: Final = 20000
HIGHEST: Final = 32767
TRIES: Final = 200
_RANGE_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """That many different ports that nothing listens on now. OSError when there are none."""
    top = _below_the_kernels_range()
    found: set[int] = set()
    for _ in range(TRIES * count):
        port = random.randint(LOWEST, top)
        if port not in found and _is_free(port):
            found.add(port)
        if len(found) == count:
            return list(found)
    raise OSError(f"no {count} free ports between {LOWEST} and {top}")


def _below_the_kernels_range() -> int:
    try:
        first = int(_RANGE_FILE.read_text().split()[0])
    except OSError:  # not Linux
        return HIGHEST
    return min(HIGHEST, first - 1) if first > LOWEST + 1000 else HIGHEST


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
