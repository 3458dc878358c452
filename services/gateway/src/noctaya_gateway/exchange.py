"""One request from its head to its last response byte: the story of the data path.

    begin     refuse what is malformed, answer a CORS preflight, authenticate, refuse an announced excess
    body      take it in: whole if it is small or the model asleep, else its first MiB; no slot is held
    admit     take a slot (POST and the like) and see whether a backend is ready
      cold    safe methods are answered here; others begin an activation, then wait or are refused
    forward   on a pooled or a new connection: the head and what there is of the body, then the rest
    answer    the backend's response, as it comes, with back-pressure both ways
    end       slot, held bytes and connection are given back, exactly once, however it ended

Everything happens in callbacks of the event loop; there is no task per request. An engine tells what the
client does (`begin`, `body_arrived`, `client_gone`, `client_blocked`, `client_drained`), pool and connection
what the backend does, the waiting line when it is this request's turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from noctaya_gateway.balancer import Address
from noctaya_gateway.body import MEBIBYTE
from noctaya_gateway.cors import RESPONSE_HEADERS as CORS_OWNED
from noctaya_gateway.errors import (
    BackendUnavailable,
    BadRequest,
    BodyTimeout,
    GatewayError,
    RequestTooLarge,
)
from noctaya_gateway.forward import MalformedResponseError, body_length, render_request_head
from noctaya_gateway.holdings import BODY, CONNECTING, DONE, FORWARDING, HELD, Holdings
from noctaya_gateway.responses import HEARTBEAT
from noctaya_gateway.sse import asks_for_stream
from noctaya_gateway.uplink import Uplink
from noctaya_gateway.upstream.connection import UpstreamConnection
from noctaya_gateway.wire import chunk

Header = tuple[bytes, bytes]

STREAM_THRESHOLD = MEBIBYTE
"""Body bytes after which a request to a ready backend is forwarded while the rest is still coming."""

_PHASES = ("body", "held", "upstream", "upstream", "response")


class Exchange(Holdings):
    """See the module. Receiver of upstream events, waiter in the line, traveller on an uplink."""

    __slots__ = ()

    # The client's side

    def begin(self) -> None:
        """The head is complete: decide whether the body is wanted at all."""
        request = self.request
        gate = self._path.gate
        self._path.exchanges.add(self)
        if self._path.access is not None:
            self._record = self._path.access.open()
        if gate.tracing is not None:
            self._trace = gate.tracing.begin(request.method, request.target, request.headers)
            self._trace.phase("admission")
        try:
            if request.fault is not None:
                raise request.fault
            if gate.cors_enabled and (preflight := gate.preflight(request)) is not None:
                self._reply(preflight, cors=False)
                return
            key = gate.auth.check(request.credentials)
            if key is not None:
                if self._record is not None:
                    self._record.key = key.name
                if not request.safe or request.upgrade:
                    self._permit = gate.limits.enter(key)
            if request.content_length > self._path.max_body:
                raise RequestTooLarge(self._path.max_body)
        except GatewayError as error:
            self.failed(error)
            return
        if request.expects_continue and request.has_body:
            self._client.send_continue()

    def body_arrived(self, data: bytes, *, whole: bool) -> None:
        """Body bytes, possibly none; `whole` when they are the last."""
        body = self.body
        phase = self._phase
        if phase == DONE:
            body.whole = whole
            return
        try:
            body.arrived(data, whole=whole, keep=phase != FORWARDING)
            if whole and body.received < self.request.content_length:
                raise BadRequest("The request body is shorter than its Content-Length.")
        except GatewayError as error:
            self.failed(error)
            return
        if not whole:
            path = self._path
            body.expire_after(path.body_timeout, loop=path.loop, call=lambda: self.failed(BodyTimeout()))
        if phase == FORWARDING:
            self._send_more(data)
        elif phase == BODY:
            if whole or (body.held >= STREAM_THRESHOLD and self._path.gate.open):
                self._admit()
        elif not whole and phase == CONNECTING:
            body.pause(self._client)

    def client_gone(self) -> None:
        """The client left: whatever goes on for it ends now."""
        if self._phase == DONE:
            return
        phase = "response" if self._answer.status else _PHASES[self._phase]
        self._path.gate.metrics.disconnect(phase)
        if self._answer.status:
            self._path.gate.metrics.response(self._answer.status)
        self._end(None)
        self._note("client_left", self._answer.status, code=phase)

    def client_blocked(self) -> None:
        """The client reads slowly: stop reading from the backend."""
        self._answer.blocked = True
        if self._connection is not None:
            self._connection.pause_reading()

    def client_drained(self) -> None:
        """The client caught up."""
        self._answer.blocked = False
        if self._connection is not None:
            self._connection.resume_reading()

    def tunnelled(self, data: bytes) -> None:
        """Bytes of the client after the backend switched protocols."""
        if self._connection is not None:
            self._connection.send(data, last=False)

    # Admission, and the line of a cold service

    def _admit(self) -> None:
        gate = self._path.gate
        request = self.request
        try:
            if request.upgrade and not gate.ready:
                raise gate.cold_error()
            if self._slot is None and (not request.safe or request.upgrade):
                self._slot = gate.admission.admit()
            # Nobody overtakes the line; safe methods never stand in it.
            address = gate.balancer.pick() if request.safe or not gate.line else None
            if address is not None:
                self.forward(address)
            else:
                self._wait()
        except GatewayError as error:
            self.failed(error)

    def _wait(self) -> None:
        gate = self._path.gate
        request = self.request
        if request.upgrade:
            raise gate.cold_error()
        if request.safe:
            self._reply(gate.answer_cold(request))
            return
        gate.begin_activation(self._trace)
        # None is pending while an address is called ready that could not be connected to a moment ago.
        pending = gate.timeline.pending
        if pending is not None:
            self._activation_id = pending.id
        self._earlier = gate.timeline.current
        if gate.reject_cold:
            raise gate.cold_error()
        if self._trace is not None:
            self._trace.wait(pending)
        self._phase = HELD
        beating = self._answer.promised or (
            gate.heartbeats and request.heartbeats and asks_for_stream(self.body)
        )
        self._ticket = gate.line.hold(self, heartbeats=beating, again=self._ticket)

    def heartbeat(self) -> None:
        """Called by the line while this request is held."""
        gate, wanted = self._path.gate, self.request.progress
        told = gate.progress if wanted is None else wanted
        comment = gate.progress_comment(self._waited()) if told else HEARTBEAT
        self._answer.heartbeat(self._extra(), comment)

    def released(self, address: Address) -> None:
        """Called by the line: it is this request's turn."""
        if not self._activation_id:
            self._activation_id = self._path.gate.timeline.id_after(self._earlier)
        if self._uplink is None:  # else it is back in line after a failed connect, and counted already
            trace = self._trace.trace_id if self._trace is not None else ""
            self._path.gate.metrics.waited(self.waited, activation_id=self._activation_id, trace_id=trace)
        self.forward(address)

    # The backend's side: sending

    def forward(self, address: Address) -> None:
        """Send the request to `address`, on a connection that lies ready or on a new one."""
        if self._trace is not None:
            self._trace.phase("upstream")
        path = self._path
        self._address = address
        if self._record is not None:
            self._record.forwarded(address)
        path.gate.balancer.opened(address)
        # A body that can't be sent twice does not go out on a connection that may be dead already.
        connection = path.pool.checkout(address) if self.body.whole else None
        if connection is not None:
            self.reached(connection)
        else:
            self._phase = CONNECTING
            self._uplink = self._uplink or self._new_uplink()
            self._uplink.dial(address)

    def _new_uplink(self) -> Uplink:
        return Uplink(self._path, self, waits=self._waits)

    @property
    def _waits(self) -> bool:
        return not (self.request.safe or self._path.gate.reject_cold)

    def unreachable(self, error: Exception, *, final: bool) -> None:
        """Called by the uplink: stand in line again, or give up."""
        if final or not self._waits:
            self.failed(
                BackendUnavailable(f"The model server could not be reached ({type(error).__name__}).")
            )
            return
        try:
            self._wait()
        except GatewayError as refusal:
            self.failed(refusal)

    def reached(self, connection: UpstreamConnection) -> None:
        """Called by the uplink: send the head and what there is of the body."""
        self._phase = FORWARDING
        self._connection = connection
        request, body = self.request, self.body
        connection.attach(self, head_only=request.method == b"HEAD")
        if self._answer.blocked:
            connection.pause_reading()
        head = render_request_head(
            request,
            length=body_length(request, body),
            traceparent=self._trace.traceparent if self._trace is not None else b"",
            identity_coding=self._answer.promised,
        )
        if body.whole:
            connection.send(head, *body.parts, last=True)
        else:
            connection.send(head, last=False)
            parts = body.parts
            body.release()
            for part in parts:
                self._send_more(part)
            body.resume(self._client)

    def _send_more(self, data: bytes) -> None:
        connection = self._connection
        assert connection is not None
        whole = self.body.whole
        if self.request.chunked:
            data = chunk(data, last=whole)
        if data or whole:
            connection.send(data, last=whole)

    def upstream_blocked(self) -> None:
        """The backend takes no more for now."""
        if not self.body.whole:
            self.body.pause(self._client)

    def upstream_drained(self) -> None:
        """The backend takes bytes again."""
        self.body.resume(self._client)

    # The backend's side: its answer

    def upstream_interim(self, status: int, reason: bytes, headers: list[Header]) -> None:
        """A 1xx."""
        self._answer.interim(status, reason, headers)

    def upstream_head(self, status: int, reason: bytes, headers: list[Header]) -> None:
        """The response begins: from here on nothing can be sent again."""
        gate = self._path.gate
        self.body.release()
        if self._record is not None:
            self._record.answered()
        if self._ticket is not None:
            gate.timeline.first_byte(self._activation_id)
        owned = CORS_OWNED if gate.cors_enabled else ()
        try:
            self._answer.begin(status, reason, headers, self._extra(), owned)
        except MalformedResponseError as fault:
            gate.metrics.upstream_error("protocol")
            self.failed(BackendUnavailable(f"The model server's response is not usable: {fault}."))

    def upstream_data(self, data: bytes) -> None:
        """Body bytes."""
        self._answer.data(data)

    def upstream_flush(self) -> None:
        """No more for the moment."""
        self._answer.flush()

    def upstream_end(self, trailers: Sequence[Header], *, by_closing: bool = False) -> None:
        """The response is complete; the connection is not ours any more."""
        self._connection = None
        answer = self._answer
        if by_closing and answer.torn:
            self._path.gate.metrics.upstream_cut()
            self.failed(answer.lost("The model server closed the connection within an event."))
            return
        outcome = answer.outcome()
        self._path.gate.metrics.response(outcome)
        self._end(outcome)
        answer.end(trailers if self.request.trailers else ())
        self._note("answered", outcome)

    def upstream_switched(self, reason: bytes, headers: list[Header]) -> None:
        """101, which only a tunnel asks for."""
        if self.request.upgrade:
            self.body.release()
            self._answer.switch(reason, headers, self._extra())
        else:
            self._path.gate.metrics.upstream_error("protocol")
            self.failed(BackendUnavailable("The model server switched protocols without being asked to."))

    def upstream_lost(self, reason: str, *, stale: bool) -> None:
        """The connection broke before the response was complete."""
        self._connection = None
        address = self._address
        if stale and address is not None and self.body.resendable:
            self._uplink = self._uplink or self._new_uplink()
            if self._uplink.replay(address):
                self._phase = CONNECTING
                if self._record is not None:
                    self._record.forwarded(address)
                return
        self._path.gate.metrics.upstream_cut()
        self.failed(self._answer.lost(reason))
