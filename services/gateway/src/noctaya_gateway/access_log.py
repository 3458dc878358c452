"""The access log: one JSON line for a request, on standard output.

A line says who asked for what, how it ended and where the time went. It holds no body, no query, no header
but the request id, and no key, only the key's name. Which requests get a line is NOCTAYA_ACCESS_LOG: all,
those that waited or failed (cold), those that failed (errors), or none. The names of the fields are contract.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Final

from noctaya_gateway.balancer import Address
from noctaya_gateway.line_writer import LineWriter
from noctaya_gateway.request import Request

ALL, COLD, ERRORS, NONE = "all", "cold", "errors", "none"

PATH_LIMIT: Final = 256
"""Characters of a path that are written."""
_HEX: Final = frozenset(b"0123456789abcdef")
_FINE: Final = frozenset(("answered", "local"))


class AccessRecord:
    """What is noted of one request while it goes on; times are monotonic, -1 for what did not happen."""

    __slots__ = (
        "_clock",
        "activation_id",
        "address",
        "answered_at",
        "attempts",
        "code",
        "forwarded_at",
        "key",
        "outcome",
        "received",
        "sent",
        "sent_status",
        "started",
        "status",
        "trace_id",
        "waited",
    )

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.started = clock()
        self.forwarded_at = self.answered_at = self.waited = -1.0
        self.attempts = self.received = self.sent = 0
        self.status = self.sent_status = 0
        self.key = self.code = self.outcome = self.trace_id = self.activation_id = ""
        self.address: Address | None = None

    def forwarded(self, address: Address) -> None:
        """The request goes to a backend, perhaps not for the first time."""
        self.attempts += 1
        self.address = address
        if self.attempts == 1:
            self.forwarded_at = self._clock()

    def answered(self) -> None:
        """The backend's answer begins."""
        self.answered_at = self._clock()


class AccessLog:
    """Decides which requests get a line and writes it.

    Args:
        kind: `all`, `cold` or `errors`.
        writer: takes the lines.
        clock: monotonic seconds; not the event loop's, which stands still for a turn of the loop.
        wall: Unix time in seconds.
    """

    def __init__(
        self,
        kind: str,
        writer: LineWriter,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._all = kind == ALL
        self._waits = kind in (ALL, COLD)
        self._clock = clock
        self._wall = wall
        self._second = -1
        self._stamp = ""
        self.writer = writer

    def open(self) -> AccessRecord:
        """A record for a request that begins now."""
        return AccessRecord(self._clock)

    def close(self, record: AccessRecord, request: Request) -> None:
        """The request is over: write its line, if it gets one."""
        fine = record.status < 400 and record.outcome in _FINE
        if self._all or not fine or (self._waits and record.waited >= 0):
            self.writer.put(render(record, request, now=self._clock(), stamp=self._time()))

    def _time(self) -> str:
        now = self._wall()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._stamp}{int((now - second) * 1000):03d}Z"


def render(record: AccessRecord, request: Request, *, now: float, stamp: str) -> bytes:
    """The line of a request that ended at `now`, monotonic; what did not happen is left out."""
    path = request.target.partition(b"?")[0][:PATH_LIMIT]
    cold = record.waited >= 0
    line = (
        f'{{"ts":"{stamp}","level":"info","logger":"access","msg":"request","service":"gateway",'
        f'"request_id":{_quoted(request.request_id)},"method":{_quoted(request.method)},"path":{_quoted(path)},'
        f'"status":{record.status},"outcome":"{record.outcome}","client":{_quoted(request.peer)},'
        f'"bytes_in":{record.received},"bytes_out":{record.sent},"cold":{"true" if cold else "false"},'
        f'"total_seconds":{now - record.started:.6f}'
    )
    if record.sent_status != record.status:
        line += f',"sent_status":{record.sent_status}'
    if record.code:
        line += f',"code":"{record.code}"'
    if record.key:
        line += f',"key":"{record.key}"'
    if cold:
        line += f',"wait_seconds":{record.waited:.6f}'
    if record.activation_id:
        line += f',"activation_id":"{record.activation_id}"'
    if record.address is not None:
        line += (
            f',"backend":{encode_basestring_ascii(str(record.address))},"attempts":{record.attempts},'
            f'"upstream_seconds":{now - record.forwarded_at:.6f}'
        )
    if record.answered_at >= 0:
        line += f',"ttfb_seconds":{record.answered_at - record.started:.6f}'
    if trace := record.trace_id or trace_of(request.traceparent):
        line += f',"trace_id":"{trace}"'
    return (line + "}\n").encode("ascii")


def trace_of(traceparent: bytes) -> str:
    """The trace id of a W3C `traceparent`; "" when it has none that is well formed."""
    if len(traceparent) < 55 or traceparent[2:3] != b"-" or traceparent[35:36] != b"-":
        return ""
    trace = traceparent[3:35]
    return trace.decode("ascii") if _HEX.issuperset(trace) and trace.strip(b"0") else ""


def _quoted(text: bytes) -> str:
    return encode_basestring_ascii(text.decode("latin-1"))
