"""Every way in which a committed event stream can end: whole, or with an error event, never silently (G2)."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable

import pytest
from noctaya_gateway.errors import ActivationFailed

from .conftest import MakeBackend, MakeStage
from .stage import PATIENCE, Backend, Handler, Stage, post, read_head, read_request, until

STREAM = b'{"stream":true}'
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"data: {}\n\n"
DONE = b"data: [DONE]\n\n"


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def sends(*parts: bytes, reset: bool = False, wait: bool = False) -> Handler:
    """A backend that reads a request, sends `parts` and ends: with a FIN, a reset, or not at all."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
        if wait:
            await reader.read()
        if reset:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    return handler


BROKEN: dict[str, Handler] = {
    "gone before its head": sends(),
    "reset before its head": sends(reset=True),
    "gone within its head": sends(SSE_HEAD[:20]),
    "no HTTP": sends(b"hello\r\n\r\n"),
    "a length that is no number": sends(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
    "a coding nobody knows": sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    "another protocol": sends(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    ),
    "gone after its head": sends(SSE_HEAD),
    "gone after an event": sends(SSE_HEAD, chunked(EVENT)),
    "reset after an event": sends(SSE_HEAD, chunked(EVENT), reset=True),
    "gone within an event": sends(SSE_HEAD, chunked(EVENT[:5])),
    "gone within a chunk": sends(SSE_HEAD, chunked(EVENT)[:-4]),
    "a chunk that is none": sends(SSE_HEAD, chunked(EVENT), b"zz\r\n"),
    "shorter than its length": sends(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n" + EVENT
    ),
    "an error": sends(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"),
    "an error cut off": sends(b"HTTP/1.1 500 No\r\nContent-Length: 20\r\n\r\nno"),
    "an event cut off by the end": sends(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + EVENT[:-3]
    ),
}


async def committed(gateway: Stage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A held stream whose head was sent."""
    reader, writer = await gateway.connect()
    writer.write(post(STREAM))
    assert (await read_head(reader)).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What follows until the connection ends, without chunks; the last chunk has to be there."""
    data = b""
    async with asyncio.timeout(PATIENCE):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            data += await reader.readexactly(size)
            assert await reader.readexactly(2) == b"\r\n"
        assert await reader.read(-1) == b"\r\n"
    return data


def error_of(stream: bytes) -> dict[str, object]:
    """The error that ends the stream, in an event of its own."""
    *_, error, done, after = stream.split(b"\n\n")
    assert (done, after) == (b"data: [DONE]", b"")
    last = error.rsplit(b"\n", 1)[-1]
    assert last.startswith(b"data: {")
    found: dict[str, object] = json.loads(last[6:])["error"]
    return found


@pytest.mark.parametrize("handler", BROKEN.values(), ids=BROKEN.keys())
async def test_g2_whatever_the_backend_does_a_committed_stream_ends_with_an_error_event(
    stage: MakeStage, backend: MakeBackend, handler: Handler
) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    server = await backend(handler)
    gateway.cool(server)
    reader, _ = await committed(gateway)
    gateway.warm(server)
    assert error_of(await rest_of(reader))["message"]


Exit = Callable[[Stage, Backend], None]


def doomed(gateway: Stage, server: Backend) -> None:
    gateway.activation.doom("no such image")


def told(gateway: Stage, server: Backend) -> None:
    gateway.line.fail_all(lambda: ActivationFailed("no", retry_seconds=1))


def stopping(gateway: Stage, server: Backend) -> None:
    gateway.path.part()


@pytest.mark.parametrize("leave", [doomed, told, stopping])
async def test_g2_whoever_ends_the_wait_a_held_stream_is_told(
    stage: MakeStage, backend: MakeBackend, leave: Exit
) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    server = await backend(sends())
    gateway.cool(server)
    reader, _ = await committed(gateway)
    leave(gateway, server)
    assert error_of(await rest_of(reader))["code"] in {"activation_failed", "draining"}
    assert gateway.path.exchanges == set()


@pytest.mark.parametrize(
    "parts", [(), (SSE_HEAD,), (SSE_HEAD, chunked(EVENT)), (SSE_HEAD, chunked(EVENT[:7]))]
)
@pytest.mark.parametrize("held", [True, False])
async def test_g2_g8_a_stream_in_flight_when_the_budget_ends_is_told(
    stage: MakeStage, backend: MakeBackend, parts: tuple[bytes, ...], held: bool
) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    server = await backend(sends(*parts, wait=True))
    if held:
        gateway.cool(server)
        reader, _ = await committed(gateway)
        gateway.warm(server)
    else:
        gateway.warm(server)
        reader, writer = await gateway.connect()
        writer.write(post(STREAM))
        if parts:
            await read_head(reader)
    await until(lambda: server.open == 1)
    if len(parts) > 1:
        await asyncio.wait_for(reader.readuntil(parts[1]), PATIENCE)
    gateway.path.part()
    if not held and not parts:
        assert (await read_head(reader)).startswith(b"HTTP/1.1 503 ")
        assert b'"code":"draining"' in await asyncio.wait_for(reader.read(-1), PATIENCE)
    else:
        assert error_of(await rest_of(reader))["code"] == "draining"
    await until(lambda: server.open == 0)


async def test_an_answer_that_can_not_be_told_goes_on_until_it_is_cut(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage()
    go_on = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await go_on.wait()
        writer.write(b"cd")

    gateway.warm(await backend(handler))
    reader, writer = await gateway.connect()
    writer.write(post())
    await read_head(reader)
    gateway.path.part()
    go_on.set()
    assert await asyncio.wait_for(reader.read(-1), PATIENCE) == b"abcd"


async def test_a_stream_whose_end_is_the_end_of_the_connection_is_whole_after_an_event(
    stage: MakeStage, backend: MakeBackend
) -> None:
    gateway = await stage(heartbeat_interval=0.02)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    server = await backend(sends(head, EVENT, DONE))
    gateway.cool(server)
    reader, _ = await committed(gateway)
    gateway.warm(server)
    stream = await rest_of(reader)
    assert stream.lstrip(b": heartbeat\n") == (EVENT + DONE).lstrip(b": heartbeat\n")
