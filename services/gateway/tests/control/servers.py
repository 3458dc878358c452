"""Small real servers on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

from noctaya_gateway.balancer import Address


class Answering:
    """An HTTP server that answers each connection's first request with `answer(path)`; None hangs."""

    def __init__(self, answer: Callable[[str], bytes | None]) -> None:
        self.answer = answer
        self.paths: list[str] = []
        self.heads: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.address = Address("127.0.0.1", 0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            path = head.split(b" ")[1].decode()
            self.paths.append(path)
            answer = self.answer(path)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.heads.append(b"")
        finally:
            await hang_up(writer)
            self.open -= 1


def status(code: int, *headers: str, body: bytes = b"") -> bytes:
    head = [f"HTTP/1.1 {code} X", f"content-length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close and wait for it, so that nothing outlives the test's loop."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def answering(answer: Callable[[str], bytes | None], *, port: int = 0) -> AsyncIterator[Answering]:
    handler = Answering(answer)
    server = await asyncio.start_server(handler.serve, "127.0.0.1", port)
    handler.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield handler
    finally:
        server.close()
        await until(lambda: handler.open == 0)
        await server.wait_closed()


def unused_address() -> Address:
    """An address where nothing listens now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Address("127.0.0.1", probe.getsockname()[1])


async def until(condition: Callable[[], bool], *, timeout: float = 10.0) -> float:  # noqa: ASYNC109
    """Wait until `condition` holds; seconds it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110  conditions here have no event
            await asyncio.sleep(0.002)
    return loop.time() - began
