"""Noticing that a client left while it is not being read (behaviour G5).

A connection whose reading is paused reports neither the end nor a reset of its peer: both stand in line
behind bytes nobody takes. The kernel knows all the same, so a paused connection is looked at a few times a
second. What can't be seen this way is an end that is still behind bytes the client's own kernel could not
send.
"""

from __future__ import annotations

import asyncio
import socket

INTERVAL = 0.25
"""Seconds between two looks."""

_ALIVE = frozenset((1, 4, 5))
"""TCP states ESTABLISHED, FIN_WAIT1 and FIN_WAIT2 (linux/tcp_states.h): the peer has not ended its side."""


def has_left(transport: asyncio.BaseTransport) -> bool:
    """True when the peer closed or reset the connection; False where the platform does not tell."""
    sock = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_INFO", None)
    if sock is None or option is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    info: bytes = sock.getsockopt(socket.IPPROTO_TCP, option, 8)
    return info[0] not in _ALIVE


class PausableReading:
    """Pauses and resumes the reading of a client connection, and aborts it when the client left meanwhile."""

    __slots__ = ("_loop", "_timer", "_transport")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None

    def pause(self) -> None:
        """Read no more for now; idempotent."""
        if self._timer is None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._timer = self._loop.call_later(INTERVAL, self._look)

    def resume(self) -> None:
        """Undo `pause`; idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def end(self) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.is_closing():
            self._timer = None
        elif has_left(self._transport):
            self._timer = None
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(INTERVAL, self._look)
