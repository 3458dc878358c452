"""A client transport that calls the fake server in the same loop: no sockets, so virtual time works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from noctaya_operator.kube.errors import ServerUnavailable, error_from_response
from noctaya_operator.kube.transport import REQUEST_TIMEOUT, Call

from fake_apiserver.api import Broken
from fake_apiserver.protocol import Answer, Asked, Stream

if TYPE_CHECKING:
    from fake_apiserver.server import FakeApiServer


class DirectTransport:
    """What `noctaya_operator.kube.transport.Transport` is over HTTP."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server

    @property
    def server(self) -> str:
        """A made-up address."""
        return "http://fake"

    async def request(self, call: Call) -> Any:
        """The decoded answer."""
        answered = await self._handle(call)
        if not isinstance(answered, Answer):
            raise TypeError("a stream where an answer was expected")
        return json.loads(answered.body)

    @asynccontextmanager
    async def stream(self, call: Call, *, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of a watch."""
        answered = await self._handle(call)
        if not isinstance(answered, Stream):
            yield _once(answered.body)
            return
        broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server.direct_streams.add(broken)
        try:
            yield _pieces(answered, broken, idle_timeout)
        finally:
            self._server.direct_streams.discard(broken)

    async def close(self) -> None:
        """Nothing to close."""

    async def _handle(self, call: Call) -> Answer | Stream:
        await asyncio.sleep(0)  # a request takes at least one turn of the loop
        if self._server.is_down:
            raise ServerUnavailable(0, "ConnectionFailed", "the server is down")
        asked = Asked(
            call.method,
            urlsplit(call.path).path,
            dict(call.query),
            call.content_type,
            b"" if call.body is None else json.dumps(call.body).encode(),
        )
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                answered = await self._server.api.handle(asked)
        except TimeoutError as error:
            raise ServerUnavailable(0, "Timeout", "no answer in time") from error
        except Broken as error:
            raise ServerUnavailable(0, "ConnectionFailed", "broken off") from error
        if isinstance(answered, Answer) and answered.status >= 400:
            wait = answered.headers.get("Retry-After")
            raise error_from_response(
                answered.status, answered.body, retry_after=float(wait) if wait else None
            )
        return answered


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _pieces(
    stream: Stream, broken: asyncio.Future[None], idle_timeout: float
) -> AsyncGenerator[bytes, None]:
    async with aclosing(stream.pieces) as pieces:
        while True:
            following: asyncio.Future[bytes | None] = asyncio.ensure_future(anext(pieces, b""))
            try:
                awaited: set[asyncio.Future[Any]] = {following, broken}
                await asyncio.wait(awaited, timeout=idle_timeout, return_when=asyncio.FIRST_COMPLETED)
                if broken.cancelled():
                    raise ServerUnavailable(0, "ConnectionFailed", "the connection was reset")
                if not following.done():
                    raise ServerUnavailable(0, "Timeout", "silence")
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.wait({following})
            piece = following.result()
            if piece is None:
                raise ServerUnavailable(0, "ConnectionFailed", "cut")
            if piece == b"":
                return
            yield piece
