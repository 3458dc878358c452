"""A request to one of the gateway's own paths on a connection of the protocol engine.

It is handed to the ASGI application with uvicorn's own request cycle, so that operational endpoints behave
as on any uvicorn server. The engine treats it like an exchange: it waits for its turn when requests are
pipelined, is told when the client leaves, and says when it is done.
"""

from __future__ import annotations

import asyncio
import urllib.parse
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from noctaya_gateway.errors import GatewayError
from noctaya_gateway.request import Request

if TYPE_CHECKING:
    from noctaya_gateway.protocol import ModelProtocol

_BODY_LIMIT = 64 * 1024
"""Body bytes kept; operational endpoints take none, so the rest of a pointless body is dropped."""


class Operation:
    """See the module."""

    def __init__(self, engine: ModelProtocol, request: Request) -> None:
        self.request = request
        self._engine = engine
        path, _, query = request.target.partition(b"?")
        self._flow = FlowControl(engine.transport)
        self._cycle = RequestResponseCycle(
            scope=self._scope(path, query),  # type: ignore[arg-type]
            transport=engine.transport,
            flow=self._flow,
            logger=engine.logger,
            access_logger=engine.access_logger,
            access_log=False,
            default_headers=[*engine.server_state.default_headers, (b"x-request-id", request.request_id)],
            message_event=asyncio.Event(),
            expect_100_continue=request.expects_continue,
            keep_alive=request.http11 and request.keep_alive,
            on_response=self._responded,
        )

    @property
    def keep_alive(self) -> bool:
        """False when the cycle closes the connection itself."""
        return self._cycle.keep_alive

    def begin(self) -> None:
        """Start the application's task."""
        self._engine.run_cycle(self._cycle)

    def body_arrived(self, data: bytes, *, whole: bool) -> None:
        """Pass a body on."""
        if len(self._cycle.body) < _BODY_LIMIT:
            self._cycle.body += data
        self._cycle.more_body = not whole
        self._cycle.message_event.set()

    def failed(self, error: GatewayError) -> None:
        """The request can't be read on."""
        self._engine.logger.info("request to an own path refused: %s", error.message)
        self.client_gone()
        self._engine.abort()

    def client_gone(self) -> None:
        """The client left."""
        self._cycle.disconnected = True
        self._cycle.message_event.set()
        self._flow.resume_writing()

    def client_blocked(self) -> None:
        """The client reads slowly."""
        self._flow.pause_writing()

    def client_drained(self) -> None:
        """The client caught up."""
        self._flow.resume_writing()

    def _responded(self) -> None:
        self._engine.operation_done(self)

    def _scope(self, path: bytes, query: bytes) -> dict[str, Any]:
        request, engine = self.request, self._engine
        return {
            "type": "http",
            "asgi": {"version": engine.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1" if request.http11 else "1.0",
            "server": engine.server,
            "client": engine.client,
            "scheme": engine.scheme,
            "root_path": engine.root_path,
            "method": request.method.decode("ascii"),
            "path": urllib.parse.unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": [(name.lower(), value) for name, value in request.headers],
            "state": engine.app_state.copy(),
        }
