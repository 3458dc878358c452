"""The stub and the SSE client against each other, on real sockets in one loop."""

import asyncio
import contextlib

from noctaya_bench.backend import Backend
from noctaya_bench.calls import call
from noctaya_bench.patience import until
from noctaya_bench.payloads import CHAT_PATH, chat_body, request_bytes
from noctaya_bench.raw_client import RawClient
from noctaya_bench.streams import StreamLoad
from noctaya_bench.stub.connection import StubConnection
from noctaya_bench.stub.sightings import Sightings

BODY = chat_body(stream=True)


@contextlib.asynccontextmanager
async def stub(*, ready=True):
    sightings = Sightings(ready=ready)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: StubConnection(sightings), "127.0.0.1", 0)
    try:
        yield Backend(child=None, port=server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def arrived(backend, tag):
    return tag in (await backend.state())["visits"]


async def closed(backend, tag):
    async def seen():
        return (await backend.state())["visits"][tag]["closed"] is not None

    await until(seen, within=10)


async def test_chat_is_answered_with_a_kilobyte():
    async with stub() as backend:
        status, body = await call(backend.port, CHAT_PATH, request=request_bytes(CHAT_PATH, BODY))
        assert (status, len(body)) == (200, 1024)
        assert (await backend.state())["requests"] == 1


async def test_health_follows_the_switch():
    async with stub(ready=False) as backend:
        assert (await call(backend.port, "/health"))[0] == 503
        await backend.set_ready(True)
        assert (await call(backend.port, "/health"))[0] == 200


async def test_paced_streams_are_counted_to_the_last_chunk():
    async with stub() as backend:
        load = StreamLoad(backend.port, request_bytes(f"{CHAT_PATH}?chunks=7&every=3", BODY))
        await load.open(70)
        await load.all_started(within=10)
        outcome = await load.all_ended(within=20)
        assert (outcome.streams, outcome.complete, outcome.cut) == (70, 70, 0)
        assert outcome.events == 7 * 70


async def test_stream_that_never_ends_counts_as_cut():
    async with stub() as backend:
        load = StreamLoad(backend.port, request_bytes(f"{CHAT_PATH}?chunks=1000&every=50&tag=cut", BODY))
        await load.open(1)
        await load.all_started(within=10)
        outcome = await load.all_ended(within=0.01)
        assert outcome.cut == 1
        await closed(backend, "cut")


async def test_heartbeats_are_no_events_and_an_error_event_is_no_success():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n: heart")
        await writer.drain()
        writer.write(b'beat\n: heartbeat\ndata: {"error":{"code":"x"}}\n\ndata: [DONE]\n\n')
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    load = StreamLoad(server.sockets[0].getsockname()[1], request_bytes(CHAT_PATH, b""))
    await load.open(1)
    outcome = await load.all_ended(within=10)
    server.close()
    assert load.streams[0].heartbeats == 2
    assert outcome.cut == 1


async def test_large_reply_waits_for_a_slow_reader_and_arrives_whole():
    size = 8 * 2**20
    async with stub() as backend:
        client = await RawClient.connect(backend.port, rest=0.05)
        await client.send(request_bytes(f"{CHAT_PATH}?bytes={size}", BODY))
        await asyncio.sleep(0.1)
        assert client.received < size
        client.read_fast()
        await client.has_received(size + client.head.index(b"\r\n\r\n") + 4, within=20)
        client.leave()


async def test_visit_notes_when_a_stalled_request_was_given_up():
    async with stub() as backend:
        client = await RawClient.connect(backend.port)
        await client.send(request_bytes(f"{CHAT_PATH}?stall=1&tag=gone", BODY))
        await until(lambda: arrived(backend, "gone"), within=10)
        left = client.leave()
        await closed(backend, "gone")
        visit = (await backend.state())["visits"]["gone"]
        assert visit["received"] == len(BODY)
        assert visit["closed"] >= left
