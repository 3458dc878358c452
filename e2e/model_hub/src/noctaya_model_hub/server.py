"""An HTTP/1.1 server that can misbehave exactly as told.

Ordinary servers go to lengths never to send a wrong length or to stop in the middle. Here that is the point,
so this is a small server of its own: one task a connection, keep-alive, bodies with a Content-Length.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from functools import partial

from noctaya_model_hub.body import Cut, altered, head, send
from noctaya_model_hub.exchange import Reply, Request
from noctaya_model_hub.faults import Effect, Faults
from noctaya_model_hub.log import RequestLog, Seen

Answer = Callable[[Request], Reply]

_MAX_HEAD = 1 << 16
_MAX_BODY = 64 << 20


class Server:
    """One listening address.

    Args:
        answer: computes the reply to a request; an exception in it is a 500 with its text.
        faults: what goes wrong.
        log: where requests are written down.
        host: where to listen; empty is every interface.
        port: 0 is a free one.
        tls: serve HTTPS with this context.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        faults: Faults,
        log: RequestLog,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._faults = faults
        self._log = log
        self._host, self._port, self._tls = host, port, tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port in use. 0 before `start`."""
        return self._port

    async def start(self) -> None:
        """Bind and serve. Raises OSError when the address can't be bound."""
        self._server = await asyncio.start_server(
            self._connected, self._host or None, self._port, ssl=self._tls, limit=_MAX_HEAD
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # What a client does to its connection is its business; what it was given is in the log.
        expected = (Cut, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)
        try:
            with contextlib.suppress(*expected):
                while (request := await _read_request(reader)) is not None:
                    await self._serve(request, reader, writer)
                    if request.headers.get("connection", "").lower() == "close":
                        break
            writer.close()
            await _closed(writer)
        except asyncio.CancelledError:
            writer.transport.abort()
            await _closed(writer)
        finally:
            self._connections.discard(task)

    async def _serve(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        cleared = self._faults.cleared
        reply, effect = self._decide(request)
        sent = 0
        try:
            await asyncio.sleep(effect.delay)
            writer.write(head(request, reply, effect))
            if request.method != "HEAD":
                still = partial(self._in_force, cleared)
                async for count in send(reply, effect, reader, writer, in_force=still):
                    sent += count
            await writer.drain()
        finally:
            self._log.add(
                Seen(
                    route=reply.route,
                    path=reply.path,
                    method=request.method,
                    target=request.target,
                    range=request.headers.get("range", ""),
                    authorization=request.headers.get("authorization", ""),
                    status=reply.status,
                    sent=sent,
                )
            )

    def _in_force(self, cleared: int) -> bool:
        return self._faults.cleared == cleared

    def _decide(self, request: Request) -> tuple[Reply, Effect]:
        try:
            reply = self._answer(request)
            effect = self._faults.effect(
                route=reply.route,
                path=reply.path,
                method=request.method,
                start=reply.start if reply.status == 206 else 0,
            )
            if effect.then is not None:
                effect.then()
                reply = self._answer(request)
            return altered(reply, effect), effect
        except Exception as error:  # noqa: BLE001  a server that fails says 500
            text = f"the stand-in failed: {type(error).__name__}: {error}"
            effect = Effect(status=500, body=text.encode())
            return altered(Reply(route="error"), effect), effect


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Wait until the connection is no more, however it ended."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None when the client has closed between two requests."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    if length > _MAX_BODY:
        raise ValueError(f"a body of {length} bytes is too large for the stand-in")
    body = await reader.readexactly(length)
    return Request(method=method, target=target, headers=headers, body=body)
