"""uvicorn inside the running event loop, with a drain that is ours.

uvicorn's own `serve` takes the signals, polls ten times a second and has one way to stop. A Noctaya process
owns its
signals, runs gRPC in the same loop and stops in steps, so those three public methods are replaced: signals
are left alone, the tick comes once a second, and `shutdown` finds its work done by `drain`.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Generator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from noctaya_api.process.head_timeout import HeadTimeout, HeadWatch
from noctaya_api.process.listen import bind_sockets, parse_listen

_POLL = 0.02
_TICK = 1.0

logger = logging.getLogger(__name__)


class _TimedHttpTools(HeadTimeout, HttpToolsProtocol):
    """uvicorn's httptools protocol with a deadline for request heads."""


class _EmbeddedServer(uvicorn.Server):
    """A uvicorn server that leaves signals alone and is told, not asked, when to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._end = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), _TICK)

    def end(self) -> None:
        self.should_exit = True
        self._end.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()


class HttpServer:
    """An HTTP/1.1 server for one ASGI application.

    Args:
        app: the ASGI application.
        listen: `host:port` or `:port`; "" as host is every interface, port 0 a free port.
        http: uvicorn's name of a protocol, or a protocol class (uvicorn's interface). A subclass of uvicorn's
            HttpToolsProtocol gets the head deadline added.
        ws: the class that takes over upgraded connections, or "none". One that wants to be part of the drain
            adds itself to `server_state.connections` and has `shutdown()` and `transport`.
        header_timeout: seconds a connection may take to send a complete request head (contracts 3.1: 10).
        uvicorn_options: passed to `uvicorn.Config`.
    """

    def __init__(
        self,
        app: Any,
        *,
        listen: str,
        http: type[asyncio.Protocol] | str = "httptools",
        ws: type[asyncio.Protocol] | str = "none",
        header_timeout: float = 10.0,
        **uvicorn_options: Any,
    ) -> None:
        self._address = parse_listen(listen)
        self._header_timeout = header_timeout
        options: dict[str, Any] = {
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "proxy_headers": False,
            "server_header": False,
            "interface": "asgi3",
            "backlog": 2048,
        }
        options.update(uvicorn_options)
        self._config = uvicorn.Config(app, http=_timed(http), ws=ws, **options)
        self._server = _EmbeddedServer(self._config)
        self._serving: asyncio.Task[None] | None = None
        self._watch: HeadWatch | None = None
        self._port = 0
        self._closed = False

    async def start(self) -> None:
        """Bind, and serve from now on.

        Raises:
            OSError: the address can't be bound; nothing is left open.
        """
        host, port = self._address
        sockets = await bind_sockets(host, port, backlog=self._config.backlog)
        self._port = sockets[0].getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=sockets), name="http-server")
        while not self._server.started:
            if self._serving.done():
                for bound in sockets:
                    bound.close()
                self._serving.result()
                raise RuntimeError("the HTTP server ended while it started")
            await asyncio.sleep(0)
        self._watch = HeadWatch(self._server.server_state.connections, timeout=self._header_timeout)
        self._watch.start()

    @property
    def port(self) -> int:
        """The port in use; the real one when port 0 was asked for. 0 before `start`."""
        return self._port

    @property
    def connections(self) -> int:
        """Open client connections."""
        return len(self._server.server_state.connections)

    def close_listeners(self) -> None:
        """Accept no new connection; the open ones go on as before."""
        if not self._closed and self._serving is not None:
            for server in self._server.servers:
                server.close()
        self._closed = True

    async def settle(self, timeout: float) -> bool:  # noqa: ASYNC109  as for `drain`
        """Close the listeners and idle connections and let requests in flight end; nothing is cut.

        Args:
            timeout: seconds they may take.

        Returns:
            Whether all have ended.
        """
        self.close_listeners()
        state = self._server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        # uvicorn's sets of connections and tasks announce nothing, so they are looked at.
        while (state.connections or state.tasks) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(min(_POLL, max(0.0, deadline - loop.time())))
        return not (state.connections or state.tasks)

    async def drain(self, timeout: float) -> int:  # noqa: ASYNC109  the budget is the method's subject
        """Close the listeners and idle connections, let requests in flight end, then cut the rest.

        Args:
            timeout: seconds the requests in flight may take.

        Returns:
            How many connections were cut.
        """
        if self._serving is None:
            return 0
        await self.settle(timeout)
        cut = await self._cut()
        if self._watch is not None:
            self._watch.stop()
        self._server.end()
        serving, self._serving = self._serving, None
        await serving
        return cut

    async def _cut(self) -> int:
        state = self._server.server_state
        left = list(state.connections)
        for connection in left:
            transport = connection.transport
            if transport is not None:
                transport.abort()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                logger.warning("a request ended with an error while it was cut", exc_info=outcome)
        return len(left)


def _timed(http: type[asyncio.Protocol] | str) -> type[asyncio.Protocol] | str:
    if isinstance(http, str):
        return _TimedHttpTools if http == "httptools" else http
    if issubclass(http, HttpToolsProtocol) and not issubclass(http, HeadTimeout):
        return type(f"Timed{http.__name__}", (HeadTimeout, http), {})
    return http
