"""Listen addresses as Go writes them (`:8080`, `127.0.0.1:0`, `[::1]:80`) and the sockets behind them."""

import asyncio
import errno
import socket

_NO_SUCH_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
_PORT_PAIR_ATTEMPTS = 16
_ALL_IPV4 = "0.0.0.0"  # noqa: S104  what an empty host asks for


def parse_listen(value: str) -> tuple[str, int]:
    """Split a listen address into host and port. Host "" means all interfaces; port 0 lets the system choose.

    Raises:
        ValueError: no port, a port outside 0..65535, or an IPv6 address without brackets.
    """
    host, separator, port_text = value.strip().rpartition(":")
    if not separator:
        raise ValueError(f"{value!r} is not host:port or :port")
    if host.startswith("["):
        if not host.endswith("]"):
            raise ValueError(f"{value!r} has an unclosed bracket")
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{value!r}: an IPv6 address needs brackets, as in [::1]:8080")
    if not (port_text.isascii() and port_text.isdigit()) or int(port_text) > 65535:
        raise ValueError(f"{value!r}: port must be a number from 0 to 65535")
    return host, int(port_text)


async def bind_sockets(host: str, port: int, *, backlog: int = 2048) -> list[socket.socket]:
    """Listening sockets for `host`, non-blocking; all of them have the same port.

    "" gives one IPv4 and one IPv6-only socket rather than a dual-stack one, so that a peer's address is never
    an IPv4-mapped IPv6 address. A machine without IPv6 gets the IPv4 socket alone.

    Raises:
        OSError: the address can't be resolved or bound.
    """
    if host:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return [_bind(family, str(address[0]), port, backlog)]
    for attempt in range(_PORT_PAIR_ATTEMPTS):
        ipv4 = _bind(socket.AF_INET, _ALL_IPV4, port, backlog)
        chosen = ipv4.getsockname()[1]
        try:
            return [ipv4, _bind(socket.AF_INET6, "::", chosen, backlog)]
        except OSError as error:
            if error.errno in _NO_SUCH_FAMILY:
                return [ipv4]
            ipv4.close()
            # A free port was asked for and the system's IPv4 choice is taken on IPv6: choose again.
            if port != 0 or error.errno != errno.EADDRINUSE or attempt == _PORT_PAIR_ATTEMPTS - 1:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on both IPv4 and IPv6")


def _bind(family: int, host: str, port: int, backlog: int) -> socket.socket:
    bound = socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=False)
    bound.setblocking(False)
    return bound
