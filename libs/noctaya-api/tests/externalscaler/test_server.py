"""The server as KEDA and a kubelet see it: health, pings, dead peers, ports."""

import asyncio
import os
import signal
import sys
import textwrap
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from noctaya_api.demand.signal import DemandSignal
from noctaya_api.externalscaler.client import ExternalScalerClient
from noctaya_api.externalscaler.server import SERVICE_NAME, ScalerServer

METADATA = {"targetValue": "5"}
SERVING = health_pb2.HealthCheckResponse.SERVING

CLIENT = textwrap.dedent(
    """
    import asyncio, sys
    from noctaya_api.externalscaler.client import ExternalScalerClient

    async def main():
        async with ExternalScalerClient(sys.argv[1], metadata={"targetValue": "5"}) as client:
            async for active in client.stream_is_active():
                print(active, flush=True)

    asyncio.run(main())
    """
)


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  the server's own state has no event
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("service", ["", SERVICE_NAME])
async def test_s3_grpc_health_answers_serving(server: ScalerServer, service: str) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
        assert response.status == SERVING


async def test_the_service_has_kedas_name() -> None:
    assert SERVICE_NAME == "externalscaler.ExternalScaler"


async def test_health_is_not_serving_for_a_watcher_while_it_stops(server: ScalerServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=""))
        assert (await watch.read()).status == SERVING
        stopping = asyncio.create_task(server.stop(60))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        await asyncio.wait_for(stopping, 30)  # a watcher does not hold the stop for the whole grace
        watch.cancel()


async def test_a_taken_port_is_an_oserror_rather_than_half_of_the_calls(server: ScalerServer) -> None:
    second = ScalerServer(DemandSignal(), listen=f"127.0.0.1:{server.port}")
    with pytest.raises(OSError, match=str(server.port)):
        await second.start()


async def test_an_empty_host_serves_ipv4_and_ipv6() -> None:
    server = ScalerServer(DemandSignal(1), listen=":0")
    await server.start()
    for host in ("127.0.0.1", "[::1]"):
        async with ExternalScalerClient(f"{host}:{server.port}", metadata=METADATA, timeout=30) as client:
            assert await client.is_active()
    await server.stop(5)


async def test_g15_an_idle_server_stops_at_once_and_twice() -> None:
    server = ScalerServer(DemandSignal(), listen="127.0.0.1:0")
    await server.start()
    async with asyncio.timeout(30):
        await server.stop(60)
        await server.stop(60)


async def test_s3_frequent_pings_are_tolerated(server: ScalerServer) -> None:
    pinging = (
        ("grpc.keepalive_time_ms", 50),
        ("grpc.keepalive_timeout_ms", 5000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )
    async with ExternalScalerClient(
        f"127.0.0.1:{server.port}", metadata=METADATA, options=pinging, timeout=30
    ) as client:
        stream = client.stream_is_active()
        assert await anext(stream) is False
        following = asyncio.create_task(anext(stream))
        # Client libraries cap their own rate; the raw pings do not wait.
        await ping(server.port, count=200)
        await asyncio.sleep(0.5)
        assert not following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await stream.aclose()


async def ping(port: int, *, count: int) -> None:
    """Send HTTP/2 pings as fast as they are answered; every one must be acknowledged."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    acknowledged = 0
    for number in range(count):
        writer.write(bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + number.to_bytes(8, "big"))
        while True:
            head = await asyncio.wait_for(reader.readexactly(9), 30)
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags = head[3], head[4]
            assert kind != 7, f"the server said goodbye: {payload!r}"
            if kind == 6 and flags & 1:
                acknowledged += 1
                break
    assert acknowledged == count
    writer.close()


async def test_s3_a_dead_peer_is_noticed_and_its_stream_ends() -> None:
    server = ScalerServer(DemandSignal(), listen="127.0.0.1:0", keepalive=0.5)
    await server.start()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, f"127.0.0.1:{server.port}", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"False\n"
        assert server.streams == 1
        os.kill(process.pid, signal.SIGSTOP)  # the kernel still answers for it, the process does not
        await eventually(lambda: server.streams == 0)
    finally:
        process.kill()
        await process.wait()
        await server.stop(5)


async def test_s3_a_killed_client_frees_its_stream() -> None:
    server = ScalerServer(DemandSignal(1), listen="127.0.0.1:0", repeat=0.1)
    await server.start()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, f"127.0.0.1:{server.port}", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"True\n"
        process.kill()
        await eventually(lambda: server.streams == 0)
    finally:
        await process.wait()
        await server.stop(5)
