import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
from noctaya_api.process.head_timeout import MAX_HEAD_BYTES
from noctaya_api.process.http_server import HttpServer
from noctaya_api.process.lifecycle import run
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


class Held:
    """An application whose answers wait until they are released."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = False

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"done"})


@asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[HttpServer]:
    server = HttpServer(app, listen="127.0.0.1:0", **options)
    await server.start()
    try:
        yield server
    finally:
        await server.drain(0)


async def connect(server: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(4)


async def test_a_request_is_answered_on_the_real_port() -> None:
    app = Held()
    app.release.set()
    async with serving(app) as server:
        assert server.port > 0
        reader, writer = await connect(server)
        writer.write(GET)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert server.connections == 1
        writer.close()


async def test_a_taken_port_is_an_oserror() -> None:
    async with serving(Held()) as server:
        second = HttpServer(Held(), listen=f"127.0.0.1:{server.port}")
        with pytest.raises(OSError, match="in use"):
            await second.start()
        assert await second.drain(0) == 0


async def test_closed_listeners_refuse_new_connections_and_keep_the_open_ones() -> None:
    app = Held()
    app.release.set()
    async with serving(app) as server:
        reader, writer = await connect(server)
        writer.write(GET)
        await answer(reader)
        server.close_listeners()
        with pytest.raises(OSError, match=r"refused|Connect"):
            await connect(server)
        writer.write(GET)
        assert (await answer(reader)).endswith(b"done")
        writer.close()


async def test_g8_drain_lets_a_request_in_flight_end_and_closes_idle_connections() -> None:
    app = Held()
    async with serving(app) as server:
        idle_reader, idle = await connect(server)
        reader, writer = await connect(server)
        writer.write(GET)
        await app.entered.wait()
        draining = asyncio.create_task(server.drain(30))
        assert await idle_reader.read() == b""
        assert not draining.done()
        app.release.set()
        assert (await answer(reader)).endswith(b"done")
        assert await reader.read() == b""
        assert await draining == 0
        idle.close()
        writer.close()


async def test_drain_cuts_what_outlives_the_budget_and_says_how_many() -> None:
    app = Held()
    async with serving(app) as server:
        reader, writer = await connect(server)
        writer.write(GET)
        await app.entered.wait()
        assert await server.drain(0.05) == 1
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        assert app.cancelled
        writer.close()


async def test_draining_twice_is_draining_once() -> None:
    async with serving(Held()) as server:
        assert await server.drain(1) == 0
        assert await server.drain(1) == 0


async def test_a_connection_that_sends_no_head_is_closed() -> None:
    async with serving(Held(), header_timeout=0.2) as server:
        reader, writer = await connect(server)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_head_that_dribbles_in_is_closed_however_busy_it_looks() -> None:
    async with serving(Held(), header_timeout=0.2) as server:
        reader, writer = await connect(server)

        async def dribble() -> None:
            writer.write(b"GET / HTTP/1.1\r\n")
            while not reader.at_eof():
                writer.write(b"a: b\r\n")
                await asyncio.sleep(0.02)

        dribbling = asyncio.create_task(dribble())
        try:
            assert await asyncio.wait_for(reader.read(), 20) == b""
        finally:
            dribbling.cancel()
            writer.close()


async def test_the_head_deadline_spares_a_request_in_flight() -> None:
    app = Held()
    async with serving(app, header_timeout=0.1) as server:
        reader, writer = await connect(server)
        writer.write(GET)
        await app.entered.wait()
        await asyncio.sleep(0.4)
        app.release.set()
        assert (await answer(reader)).endswith(b"done")
        writer.close()


async def test_the_head_deadline_spares_an_answer_with_a_slow_second_head_behind_it() -> None:
    app = Held()
    async with serving(app, header_timeout=0.1) as server:
        reader, writer = await connect(server)
        writer.write(GET + b"GET / HT")
        await app.entered.wait()
        await asyncio.sleep(0.4)
        app.release.set()
        assert (await answer(reader)).endswith(b"done")
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_an_endless_head_is_refused() -> None:
    async with serving(Held()) as server:
        reader, writer = await connect(server)
        writer.write(b"GET / HTTP/1.1\r\nx: ")
        chunk = b"a" * 65536
        try:
            for _ in range(2 * MAX_HEAD_BYTES // len(chunk)):
                writer.write(chunk)
                await writer.drain()
            received = await reader.read()
        except ConnectionError:
            received = b""
        assert received == b"" or received.startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_a_protocol_class_of_ones_own_gets_the_head_deadline_too() -> None:
    made: list[str] = []

    class Own(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            made.append("own")
            super().connection_made(transport)

    async with serving(Held(), http=Own, header_timeout=0.2) as server:
        reader, writer = await connect(server)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        assert made == ["own"]
        writer.close()


async def test_an_upgraded_connection_goes_to_the_websocket_class() -> None:
    taken = asyncio.Event()

    class Tunnel(asyncio.Protocol):
        def __init__(self, config: Any, server_state: Any, app_state: Any) -> None:
            pass

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            taken.set()
            self.transport.close()

    async with serving(Held(), ws=Tunnel) as server:
        reader, writer = await connect(server)
        writer.write(b"GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        await asyncio.wait_for(taken.wait(), 20)
        await reader.read()
        writer.close()


async def test_signals_are_left_alone() -> None:
    import signal

    before = signal.getsignal(signal.SIGTERM)
    async with serving(Held()):
        assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    "behaviour",
    [
        test_g8_drain_lets_a_request_in_flight_end_and_closes_idle_connections,
        test_drain_cuts_what_outlives_the_budget_and_says_how_many,
    ],
)
def test_it_behaves_the_same_under_uvloop(behaviour: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with ThreadPoolExecutor(1) as thread:  # its own loop, away from the one of the test session
        thread.submit(lambda: run(behaviour())).result()
