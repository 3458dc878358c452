"""What one request holds, and the ends at which it is all given back.

However a request ends - answered by the backend, by the gateway, with an error, or because its client left -
slot, permit, held bytes, connection and place in line are given back exactly once, it is counted, and the
access log gets its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noctaya_gateway.answer import Answer
from noctaya_gateway.body import RequestBody
from noctaya_gateway.client import Client
from noctaya_gateway.errors import Draining, GatewayError
from noctaya_gateway.extras import extra_lines
from noctaya_gateway.request import Request

if TYPE_CHECKING:
    from noctaya_gateway.access_log import AccessRecord
    from noctaya_gateway.admission import Slot
    from noctaya_gateway.balancer import Address
    from noctaya_gateway.datapath import DataPath
    from noctaya_gateway.limits import Permit
    from noctaya_gateway.responses import Reply
    from noctaya_gateway.timeline import Moments
    from noctaya_gateway.tracing import RequestTrace
    from noctaya_gateway.uplink import Uplink
    from noctaya_gateway.upstream.connection import UpstreamConnection
    from noctaya_gateway.waiting import Ticket

BODY, HELD, CONNECTING, FORWARDING, DONE = range(5)
"""Phases of a request; in DONE nothing is held any more."""


class Holdings:
    """See the module; `Exchange` tells the story in between."""

    __slots__ = (
        "_activation_id",
        "_address",
        "_answer",
        "_client",
        "_connection",
        "_earlier",
        "_path",
        "_permit",
        "_phase",
        "_record",
        "_slot",
        "_ticket",
        "_trace",
        "_uplink",
        "body",
        "request",
        "waited",
    )

    def __init__(self, path: DataPath, client: Client, request: Request) -> None:
        self.request = request
        self.body = RequestBody(path.max_body, path.budget)
        self.waited = -1.0
        self._path = path
        self._client = client
        self._phase = BODY
        self._answer = Answer(client, request.method == b"HEAD")
        self._slot: Slot | None = None
        self._ticket: Ticket | None = None
        self._address: Address | None = None
        self._uplink: Uplink | None = None
        self._connection: UpstreamConnection | None = None
        self._trace: RequestTrace | None = None
        self._permit: Permit | None = None
        self._record: AccessRecord | None = None
        self._activation_id = ""
        self._earlier: Moments | None = None

    # Ends

    def leave(self) -> Address | None:
        """The request is no load to its address any more; returns the address."""
        address, self._address = self._address, None
        if address is not None:
            self._path.gate.balancer.closed(address)
        return address

    def _waited(self) -> float:
        ticket = self._ticket
        return self._path.loop.time() - ticket.arrived if ticket is not None and ticket.held else self.waited

    def _extra(self, *, cors: bool = True) -> list[bytes]:
        return extra_lines(
            self._path.gate,
            self.request,
            activation_id=self._activation_id if self._ticket is not None else "",
            waited=self._waited(),
            permit=self._permit,
            cors=cors,
        )

    def _reply(self, reply: Reply, *, cors: bool = True) -> None:
        self._path.gate.metrics.response(reply.status)
        self._end(reply.status)
        self._answer.reply(reply, self._extra(cors=cors))
        self._note("local", reply.status)

    def failed(self, error: GatewayError) -> None:
        """End with an error; also called by the line (the wait was in vain) and by the engine (bad input)."""
        if self._phase == DONE:
            return
        metrics, answer = self._path.gate.metrics, self._answer
        if error.reason is not None:
            metrics.rejection(error.reason)
        # A refusal on a promised stream is a 200 on the wire and is counted as one (contracts 3.3).
        promised = answer.promised and error.reason is not None
        metrics.response(answer.status if promised else error.status)
        self._end(error.status)
        answer.fail(error, self._extra())
        self._note("failed" if error.status == 502 else "refused", error.status, code=error.code)

    def part(self) -> None:
        """This process stops: end now with an error, if the client can still be told one."""
        if self._answer.tellable:
            self.failed(Draining())

    def _note(self, outcome: str, status: int, *, code: str = "") -> None:
        """Write the line of the access log; the last thing that happens."""
        record, access = self._record, self._path.access
        if record is None or access is None:
            return
        record.outcome, record.status, record.code = outcome, status, code
        record.waited = self.waited if self._ticket is not None else -1.0
        record.received, record.sent = self.body.received, self._answer.sent
        record.sent_status, record.activation_id = self._answer.status, self._activation_id
        if self._trace is not None:
            record.trace_id = self._trace.trace_id
        access.close(record, self.request)

    def _end(self, status: int | None) -> None:
        self._phase = DONE
        self._path.exchanges.discard(self)
        self.body.close()
        if self._ticket is not None:
            if self._ticket.held:
                self.waited = self._waited()
            self._ticket.cancel()
        if self._connection is not None:
            self._connection.close()
        if self._uplink is not None:
            self._uplink.cancel()
        if self._address is not None:
            self.leave()
        if self._slot is not None:
            self._slot.release()
        if self._permit is not None:
            self._permit.release()
        if self._trace is not None:
            self._trace.end(status)
