"""The response to one request, as the client gets it.

Three kinds of source write it: the gateway itself (errors, local answers), the backend, and the waiting
line (heartbeats). The answer knows how far the response has come and therefore what can still be said:
before the head anything, after the head of an event stream an error event, after any other head nothing -
then only a cut tells the client the truth.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from email.utils import formatdate

from noctaya_gateway.client import BODILESS, UNKNOWN, Client
from noctaya_gateway.errors import BackendInterrupted, BackendUnavailable, GatewayError
from noctaya_gateway.forward import filter_response_head, lines_of
from noctaya_gateway.responses import HEARTBEAT, STREAM_HEADERS, Reply, render_error
from noctaya_gateway.sse import Reframing, closing_error

Header = tuple[bytes, bytes]


class Answer:
    """See the module.

    `extra` are header lines the gateway adds.

    Attributes:
        status: the status sent, 0 before a head was.
        sent: body bytes handed to the client.
        promised: the gateway itself began an event stream before the backend answered.
        blocked: the client takes no more bytes for now.
    """

    __slots__ = (
        "_begun",
        "_client",
        "_head_only",
        "_reframing",
        "_stream",
        "_tail",
        "blocked",
        "promised",
        "sent",
        "status",
    )

    def __init__(self, client: Client, head_only: bool) -> None:
        self._client = client
        self._head_only = head_only
        self._begun = False
        self._stream = False
        self._tail = b""
        self._reframing: Reframing | None = None
        self.status = 0
        self.sent = 0
        self.promised = False
        self.blocked = False

    def outcome(self) -> int:
        """The status to count: the backend's own, also where a promised stream hides it."""
        return self.status if self._reframing is None else self._reframing.status

    # By the gateway itself

    def reply(self, reply: Reply, extra: list[bytes]) -> None:
        """Send a complete response."""
        self.status = reply.status
        close = any(name == b"connection" for name, _ in reply.headers)
        headers = [header for header in reply.headers if header[0] != b"connection"]
        headers.append((b"date", formatdate(time.time(), usegmt=True).encode()))
        bodiless = self._head_only or not reply.body
        length = BODILESS if bodiless else len(reply.body)
        self._client.send_head(reply.status, b"", [*lines_of(headers), *extra], length, close=close)
        if not bodiless:
            self._send(reply.body)
        self._client.finish()

    def fail(self, error: GatewayError, extra: list[bytes]) -> None:
        """Say `error` in the best way that is left."""
        if self.status == 0:
            self.reply(render_error(error), extra)
        elif self.tellable:
            self._send(closing_error(error, tail=self._tail))
            self._client.finish(close=True)
        else:
            self._client.abort()

    @property
    def tellable(self) -> bool:
        """True while an error can still be said: before the head, or on an event stream."""
        return self.status == 0 or (self._stream and not self._head_only)

    @property
    def torn(self) -> bool:
        """True when an event stream stops within a line, which no end of one does; some leave out the blank
        line or even the last line's end after `[DONE]`."""
        tail = self._tail
        return self._stream and tail[-1:] not in (b"", b"\n", b"\r") and not tail.endswith(b"[DONE]")

    def heartbeat(self, extra: list[bytes], comment: bytes = HEARTBEAT) -> None:
        """Send a heartbeat, promising the stream with the first one; a client that does not read gets
        none. `comment` is one line that begins with a colon, and nothing after its end."""
        if not self.promised:
            self.promised = self._stream = True
            self.status = 200
            self._client.send_head(200, b"", [*lines_of(STREAM_HEADERS), *extra], UNKNOWN)
        if not self.blocked:
            self._send(comment)

    # By the backend

    def interim(self, status: int, reason: bytes, headers: Sequence[Header]) -> None:
        """Pass a 1xx response on while no head is out."""
        if self.status == 0:
            self._client.send_interim(status, reason, lines_of(headers))

    def begin(
        self,
        status: int,
        reason: bytes,
        headers: Sequence[Header],
        extra: list[bytes],
        owned: Collection[bytes],
    ) -> None:
        """Take the backend's head, less the headers `owned` by the gateway; MalformedResponseError when it
        can't be passed on.
        """
        lines, length, stream, coded = filter_response_head(
            status, headers, head_only=self._head_only, owned=owned
        )
        self._begun = True
        if self.promised:
            if not (200 <= status < 300 and stream) or coded:
                self._reframing = Reframing(status)
            return
        self.status = status
        self._stream = stream and length == UNKNOWN and not coded
        lines += extra
        self._client.send_head(status, reason, lines, length)

    def lost(self, reason: str) -> GatewayError:
        """What it is when the backend breaks off now: before its answer or in the middle of it."""
        return BackendInterrupted(reason) if self._begun else BackendUnavailable(reason)

    def switch(self, reason: bytes, headers: Sequence[Header], extra: list[bytes]) -> None:
        """The backend switched protocols; what follows are raw bytes."""
        self.status = 101
        self._client.send_head(101, reason, [*lines_of(headers), *extra], UNKNOWN)
        self._client.flush()

    def data(self, data: bytes) -> None:
        """Body bytes of the backend."""
        if self._reframing is not None:
            self._reframing.add(data)
            return
        if self._stream:
            self._tail = data
        self.sent += len(data)
        self._client.send_body(data)

    def flush(self) -> None:
        """The backend has nothing more just now."""
        self._client.flush()

    def end(self, trailers: Sequence[Header]) -> None:
        """The backend's response is complete."""
        if self._reframing is not None:
            self._send(self._reframing.events())
        self._client.finish(trailers)

    def _send(self, data: bytes) -> None:
        self.sent += len(data)
        self._client.send_body(data)
