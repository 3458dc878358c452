"""Loopback ports: is a wanted one free, and free ones for replicas.

Replicas get ports outside the kernel's ephemeral range, because a model may load for minutes before it
listens, and meanwhile an outgoing connection of any program may be given an ephemeral port. A port that has
been handed out stays reserved in this process until it is given back.
"""

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 20_000
HIGHEST = 32_000
TRIES = 200


class PortUnavailable(Exception):
    """No such port can be listened on; the message says why."""


def check_free(host: str, port: int) -> None:
    """Raise PortUnavailable unless a server could listen on `host`:`port` now."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise PortUnavailable(f"can't listen on {host or '*'}:{port}: {error.strerror or error}") from error


class PortPool:
    """Free loopback ports, each handed out once until it is given back."""

    def __init__(self, randomness: random.Random | None = None) -> None:
        self._random = randomness or random.Random()  # noqa: S311 - spreads ports, guards nothing
        self._taken: set[int] = set()
        self._low, self._high = port_range()

    def take(self) -> int:
        """A port nobody listens on. Raises PortUnavailable when none is found in a fair number of tries."""
        for _ in range(TRIES):
            port = self._random.randint(self._low, self._high)
            if port in self._taken:
                continue
            try:
                check_free(LOOPBACK, port)
            except PortUnavailable:
                continue
            self._taken.add(port)
            return port
        raise PortUnavailable(f"no free port found on {LOOPBACK} in {self._low}..{self._high}")

    def give_back(self, port: int) -> None:
        """The port may be handed out again."""
        self._taken.discard(port)


def service_ports(host: str, *, first: int, count: int, pool: PortPool) -> list[int]:
    """Ports for `count` services: `first` and the next free ones after it, or any free ones when `first` is
    0.

    Raises PortUnavailable when `first` itself is taken: it was asked for by name.
    """
    if first == 0:
        return [pool.take() for _ in range(count)]
    check_free(host, first)
    ports = [first]
    candidate = first
    while len(ports) < count:
        candidate += 1
        if candidate > 65535:
            raise PortUnavailable(f"no {count} free ports from {first} upwards")
        try:
            check_free(host, candidate)
        except PortUnavailable:
            continue
        ports.append(candidate)
    return ports


def port_range() -> tuple[int, int]:
    """Where to look: 20000..32000, moved below the kernel's ephemeral range when that starts lower."""
    try:
        ephemeral = int(EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):  # not Linux: their ephemeral ranges start at 49152
        return LOWEST, HIGHEST
    if ephemeral > HIGHEST:
        return LOWEST, HIGHEST
    high = max(2_048, ephemeral - 1)
    return max(1_024, high - (HIGHEST - LOWEST)), high
