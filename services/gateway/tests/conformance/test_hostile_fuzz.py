"""G5: noise of every kind, from clients and from the backend, leaves the gateway serving and in step."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .harness.backend import Call
from .harness.client import STREAM_BODY, connected, open_client, request_bytes
from .harness.message import LAST_CHUNK, chunk
from .harness.process import eventually
from .harness.rig import Rig
from .harness.wire import WireEndError
from .test_g4_smuggling import assert_unambiguous

THOROUGH = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)

WHOLE = (
    request_bytes(headers=[(b"X-A", b"b"), (b"X-A", b"c")], body=b"0123456789"),
    request_bytes(headers=[(b"Transfer-Encoding", b"chunked")], body=None) + chunk(b"hello") + LAST_CHUNK,
    request_bytes(b"GET", b"/v1/models?x=1", body=None),
    request_bytes(body=STREAM_BODY) + request_bytes(b"HEAD", b"/", body=None),
    request_bytes(headers=[(b"Expect", b"100-continue"), (b"Connection", b"close")], body=b"x"),
)


async def settle(rig: Rig) -> None:
    """Every request of the noise is over and the next one is served."""

    async def none() -> bool:
        return await rig.gateway.admitted() == 0

    await eventually(none, within=5)
    rig.backend.reset()
    assert (await rig.gateway.ask()).status == 200


@given(noise=st.binary(min_size=1, max_size=400), how=st.integers(0, 2))
@THOROUGH
async def test_g5_random_bytes_are_survived(warm: Rig, noise: bytes, how: int) -> None:
    async with connected(warm.gateway.port) as client:
        client.send(noise)
        if how == 1:
            client.wire.shut_writing()
        await asyncio.sleep(0.005)
        client.leave(reset=how == 2)
    await settle(warm)


@given(which=st.integers(0, len(WHOLE) - 1), seed=st.integers(0, 1 << 30), cuts=st.integers(0, 4))
@THOROUGH
async def test_g5_damaged_requests_never_reach_the_backend_ambiguous(
    warm: Rig, which: int, seed: int, cuts: int
) -> None:
    chooser = random.Random(seed)
    data = bytearray(WHOLE[which])
    for _ in range(chooser.randrange(1, 4)):
        spot = chooser.randrange(len(data))
        kind = chooser.randrange(3)
        if kind == 0:
            data[spot] = chooser.randrange(256)
        elif kind == 1:
            del data[spot]
        else:
            data.insert(spot, chooser.choice(b"\r\n\x00 :;0\xff"))
    async with connected(warm.gateway.port) as client:
        for start in range(0, len(data), len(data) // (cuts + 1) + 1):
            client.send(bytes(data[start : start + len(data) // (cuts + 1) + 1]))
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)
    for call in warm.backend.calls:
        assert_unambiguous(call)
    await settle(warm)


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@given(seed=st.integers(0, 1 << 30))
@THOROUGH
async def test_g5_damaged_answers_never_reach_the_next_client(warm: Rig, seed: int) -> None:
    chooser = random.Random(seed)
    data = bytearray(ANSWER + chunk(b"data: 1\n\n") + chunk(b"data: [DONE]\n\n") + LAST_CHUNK)
    for _ in range(chooser.randrange(1, 5)):
        spot = chooser.randrange(len(data))
        data[spot : spot + chooser.randrange(3)] = bytes(chooser.choices(range(256), k=chooser.randrange(3)))

    async def script(call: Call) -> None:
        call.send(bytes(data))
        await call.wire.silent(0.02)
        call.wire.close()

    warm.backend.script = script
    async with connected(warm.gateway.port) as client:
        client.request(body=STREAM_BODY)
        try:
            head = await client.head(within=3)
            assert 100 <= head.status <= 999
        except WireEndError:
            pass
    await settle(warm)


async def test_g5_a_thousand_pipelined_requests_are_answered_in_order(warm: Rig) -> None:
    async def echo(call: Call) -> None:
        call.reply(call.data)

    warm.backend.script = echo
    async with connected(warm.gateway.port) as client:
        for number in range(1000):
            client.request(body=b"%d" % number)
        for number in range(1000):
            reply = await client.reply(within=60)
            assert (reply.status, reply.data) == (200, b"%d" % number)


async def test_g5_a_crowd_of_slow_heads_does_not_slow_others(warm: Rig) -> None:
    crowd = [await open_client(warm.gateway.port) for _ in range(300)]
    for client in crowd:
        client.send(b"POST /v1/x HTTP/1.1\r\nHost: m\r\nX-S")
    for _ in range(20):
        assert (await warm.gateway.ask(within=3)).status == 200
    for number, client in enumerate(crowd):
        client.leave(reset=number % 2 == 0)
    await settle(warm)


async def test_g5_connections_that_come_and_vanish_leave_no_socket(warm: Rig) -> None:
    await warm.gateway.ask()
    before = warm.gateway.open_sockets()
    for number in range(400):
        client = await open_client(warm.gateway.port)
        if number % 3:
            client.request(body=STREAM_BODY)
        client.leave(reset=number % 2 == 0)

    async def gone() -> bool:
        return warm.gateway.open_sockets() <= before + 70 and await warm.gateway.admitted() == 0

    await eventually(gone)
    await settle(warm)


@pytest.mark.parametrize("limit", [64])
async def test_g5_running_out_of_file_descriptors_is_survived(warm: Rig, limit: int) -> None:
    import resource

    import psutil

    process = psutil.Process(warm.gateway.pid)
    normal = process.rlimit(resource.RLIMIT_NOFILE)
    process.rlimit(resource.RLIMIT_NOFILE, (limit, normal[1]))
    try:
        crowd = []
        for _ in range(limit * 2):
            client = await open_client(warm.gateway.port)
            client.request()
            crowd.append(client)
        await asyncio.sleep(1.5)
        for client in crowd:
            client.leave(reset=True)
        await asyncio.sleep(1.5)
    finally:
        process.rlimit(resource.RLIMIT_NOFILE, normal)

    async def serving() -> bool:
        try:
            return bool((await warm.gateway.ask(within=3)).status == 200)
        except (TimeoutError, WireEndError):
            return False

    await eventually(serving, within=20)
    # The loop says so itself, with a traceback, once for every refused accept.
    flood = [line for line in warm.gateway.lines if "Traceback" in line]
    assert len(flood) < 50
    warm.gateway.lines.clear()
    await settle(warm)


FLOOD = b"X-Trailer: " + b"y" * 100_000 + b"\r\n"


@pytest.mark.parametrize("line", [FLOOD, b"y" * 100_000], ids=["many trailers", "one endless trailer"])
async def test_g5_endless_request_trailers_do_not_fill_memory(warm: Rig, line: bytes) -> None:
    await warm.gateway.ask()
    before = warm.gateway.rss()
    async with connected(warm.gateway.port) as client:
        client.request(headers=[(b"Transfer-Encoding", b"chunked")], body=None)
        client.send(chunk(b"x") + b"0\r\nX-First: ")
        for _ in range(400):
            client.send(line)
            await client.wire.flush()
            if not client.wire.open:
                break
        assert warm.gateway.rss() - before < (16 << 20)
    await settle(warm)


@pytest.mark.parametrize("line", [FLOOD, b"y" * 100_000], ids=["many trailers", "one endless trailer"])
async def test_g5_endless_response_trailers_do_not_fill_memory(warm: Rig, line: bytes) -> None:
    async def script(call: Call) -> None:
        call.send_head(headers=[(b"Transfer-Encoding", b"chunked")])
        call.send_chunk(b"x")
        call.send(b"0\r\nX-First: ")
        for _ in range(400):
            call.send(line)
            await call.wire.flush()
            if not call.wire.open:
                return

    warm.backend.script = script
    before = warm.gateway.rss()
    async with connected(warm.gateway.port) as client:
        client.request()
        call = await warm.backend.call()
        await asyncio.sleep(1.5)
        assert warm.gateway.rss() - before < (16 << 20)
        call.wire.close()
    await settle(warm)


async def test_g5_a_body_in_one_byte_chunks_costs_what_it_holds(cold: Rig) -> None:
    before = cold.gateway.rss()
    async with connected(cold.gateway.port) as client:
        client.request(headers=[(b"Transfer-Encoding", b"chunked")], body=None)
        for _ in range(16):
            client.send(b"1\r\nx\r\n" * 65536)
            await client.wire.flush()
        client.send(LAST_CHUNK)

        async def held() -> bool:
            return await cold.gateway.admitted() == 1

        await eventually(held)
        assert cold.gateway.rss() - before < (12 << 20)
        cold.backend.set_healthy(True)
        assert (await client.reply()).status == 200
    assert (await cold.backend.call()).data == b"x" * (16 * 65536)
