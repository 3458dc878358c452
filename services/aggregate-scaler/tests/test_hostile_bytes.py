"""A2, S3: noise on either port leaves the scaler serving, its demand untouched and its connections closed."""

import asyncio
import random
from typing import Any

import pytest

HEAD = b"POST /v1/demand HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer " + b"t" * 43 + b"\r\n"
REPORT = b'{"memberID":"evil","sequence":1,"demand":7}'
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
WHOLE = (
    HEAD + b"Content-Length: %d\r\n\r\n" % len(REPORT) + REPORT,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(REPORT) + REPORT + b"\r\n0\r\n\r\n",
    PREFACE + SETTINGS + b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x01\x00\x00",
)
FIXED = (
    HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n",
    HEAD + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    b"POST /v1/demand HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
    PREFACE + b"\xff" * 500,
    PREFACE + SETTINGS * 2_000,
    b"\x16\x03\x01\x02\x00" + b"\x00" * 300,
)
CASES = 60
"""Damaged copies, from one seed: every run tries the same."""


def damaged(chooser: random.Random) -> bytes:
    """One of the whole messages, with a few bytes changed, left out or put in."""
    data = bytearray(chooser.choice(WHOLE))
    for _ in range(chooser.randrange(1, 5)):
        spot = chooser.randrange(len(data))
        noise = bytes(chooser.choices(range(256), k=chooser.randrange(4)))
        data[spot : spot + chooser.randrange(3)] = noise
    return bytes(data)


async def send(port: int, data: bytes) -> None:
    """Write it all, hear what comes within a moment, leave."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(0.05):
            while await reader.read(65536):
                continue
    except (TimeoutError, ConnectionError):
        return  # the scaler waits for more, or has hung up: both are fine
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("listener", ["http", "grpc"])
async def test_noise_leaves_the_scaler_serving_and_its_demand_as_it_was(scaler: Any, listener: str) -> None:
    scaler.clock.now += 11  # from now on it knows its demand
    port = scaler.app.http_port if listener == "http" else scaler.app.grpc_port
    chooser = random.Random(7)
    for data in (*FIXED, *(damaged(chooser) for _ in range(CASES))):
        await send(port, data)
    assert await scaler.report("good", 1, 5) == 204
    metrics = await scaler.metrics()
    # A damaged report may still be a whole one, of the one member that the noise speaks of.
    assert metrics["noctaya_scaler_gateway_members"] <= 1 + CASES
    assert metrics["noctaya_scaler_demand"] >= 5
    async with scaler.keda() as keda:
        assert await keda.is_active()
