"""G2, G5: a model server that answers nonsense, too much or unasked harms no other request."""

from __future__ import annotations

import random

import pytest

from .harness.backend import Call
from .harness.client import STREAM_BODY, connected
from .harness.message import LAST_CHUNK, chunk
from .harness.rig import Rig
from .harness.wire import WireEndError
from .test_hostile_fuzz import settle

EVIL = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nEVIL"
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
SHAPES = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunks": SSE + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"data: 1\n\n") + LAST_CHUNK,
    "until the end": SSE + b"Connection: close\r\n\r\ndata: 1\n\n",
    "old": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "hints first": b"HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an error": b'HTTP/1.1 500 E\r\nContent-Length: 29\r\n\r\n{"error":{"message":"\\ud800"}}',
}
NONSENSE = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a huge length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\nhello",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 300_000 + b"\r\n\r\n",
    "a switch that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\n\r\n" + EVIL,
    "hints without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 2000,
    "a huge chunk": SSE + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx",
    "no HTTP": b"\x16\x03\x01\x00\x05hello\r\n\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a NUL in a header": b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
}
DAMAGED = 8
"""Damaged copies of each shape, from one seed: every run tries the same."""


async def answered(rig: Rig, answer: bytes, *, stream: bool) -> None:
    """One request to a model server that answers so; however it ends for this client."""

    async def script(call: Call) -> None:
        call.send(answer)
        await call.wire.silent(0.01)
        call.wire.close()

    rig.backend.script = script
    async with connected(rig.gateway.port) as client:
        client.request(body=STREAM_BODY if stream else b"{}")
        try:
            head = await client.head(within=10)
            assert 100 <= head.status <= 999
        except WireEndError:
            return  # what can't be passed on is cut off


@pytest.mark.parametrize("shape", SHAPES)
async def test_g5_damaged_answers_of_every_shape_leave_the_gateway_in_step(warm: Rig, shape: str) -> None:
    chooser = random.Random(shape)
    for number in range(DAMAGED):
        data = bytearray(SHAPES[shape])
        for _ in range(chooser.randrange(1, 4)):
            spot = chooser.randrange(len(data))
            data[spot : spot + chooser.randrange(3)] = bytes(
                chooser.choices(range(256), k=chooser.randrange(3))
            )
        await answered(warm, bytes(data), stream=number % 2 == 0)
    await settle(warm)


@pytest.mark.parametrize("answer", NONSENSE)
async def test_g5_nonsense_of_a_backend_reaches_nobody_else(warm: Rig, answer: str) -> None:
    for stream in (False, True):
        await answered(warm, NONSENSE[answer], stream=stream)
    await settle(warm)
