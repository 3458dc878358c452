"""StreamIsActive over real gRPC."""

import asyncio
import gc
from contextlib import aclosing
from typing import Any

import grpc
import pytest
from noctaya_api.demand.signal import DemandSignal
from noctaya_api.externalscaler.client import ExternalScalerClient
from noctaya_api.externalscaler.server import ScalerServer

METADATA = {"targetValue": "5"}


class Reader:
    """Collects what a stream says and how it ended."""

    def __init__(self, client: ExternalScalerClient) -> None:
        self.said: list[bool] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._read(client))

    async def _read(self, client: ExternalScalerClient) -> None:
        async with aclosing(client.stream_is_active()) as stream:
            async for active in stream:
                self.said.append(active)
                self._news.set()

    async def until(self, count: int) -> list[bool]:
        async with asyncio.timeout(30):
            while len(self.said) < count:
                self._news.clear()
                await self._news.wait()
        return self.said[:count]

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the server's own state has no event
            await asyncio.sleep(0.01)


async def test_a9_a_new_stream_gets_the_current_state_and_flips_reach_all(
    source: DemandSignal, client: ExternalScalerClient
) -> None:
    first = Reader(client)
    assert await first.until(1) == [False]
    source.publish(2)
    assert await first.until(2) == [False, True]
    second = Reader(client)
    assert await second.until(1) == [True]
    source.publish(0)
    for reader in (first, second):
        async with asyncio.timeout(30):
            while reader.said[-1]:
                await reader.until(len(reader.said) + 1)
        await reader.close()


async def test_s4_nothing_is_pushed_while_nothing_changes(
    source: DemandSignal, client: ExternalScalerClient
) -> None:
    reader = Reader(client)
    await reader.until(1)
    await asyncio.sleep(0.5)
    assert reader.said == [False]
    await reader.close()


async def test_s4_true_is_repeated_while_demand_lasts_whatever_its_size() -> None:
    source = DemandSignal(1)
    server = ScalerServer(source, listen="127.0.0.1:0", repeat=0.2)
    await server.start()
    async with ExternalScalerClient(f"127.0.0.1:{server.port}", metadata=METADATA) as client:
        reader = Reader(client)
        started = asyncio.get_running_loop().time()
        await reader.until(1)
        for demand in range(2, 200):  # changes of size are no reason for a message
            source.publish(demand)
            await asyncio.sleep(0)
        assert await reader.until(4) == [True] * 4
        assert asyncio.get_running_loop().time() - started >= 0.55
        await reader.close()
    await server.stop(5)


async def test_s4_a_flip_and_back_between_two_reads_is_no_message() -> None:
    source = DemandSignal()
    server = ScalerServer(source, listen="127.0.0.1:0")
    await server.start()
    async with ExternalScalerClient(f"127.0.0.1:{server.port}", metadata=METADATA) as client:
        reader = Reader(client)
        await reader.until(1)
        source.publish(1)
        source.publish(0)
        await asyncio.sleep(0.2)
        source.publish(3)
        assert await reader.until(2) == [False, True]
        await reader.close()
    await server.stop(5)


async def test_s1_an_unknown_source_holds_the_stream_and_speaks_once_it_knows(
    source: Any, client: ExternalScalerClient
) -> None:
    source.known = False
    reader = Reader(client)
    await eventually(lambda: source.asked >= 3)
    assert reader.said == []
    assert not reader.task.done()
    source.known = True
    assert await reader.until(1) == [False]
    await reader.close()


async def test_g8_a_stop_ends_every_stream_with_status_ok_at_once(
    source: DemandSignal, server: ScalerServer, client: ExternalScalerClient
) -> None:
    readers = [Reader(client) for _ in range(3)]
    for reader in readers:
        await reader.until(1)
    started = asyncio.get_running_loop().time()
    await server.stop(60)
    assert asyncio.get_running_loop().time() - started < 30
    for reader in readers:
        await asyncio.wait_for(reader.task, 30)  # an error status would be raised here


async def test_the_number_of_open_streams_is_told_and_returns_to_zero(source: DemandSignal) -> None:
    counts: list[int] = []
    server = ScalerServer(source, listen="127.0.0.1:0", on_streams=counts.append)
    await server.start()
    async with ExternalScalerClient(f"127.0.0.1:{server.port}", metadata=METADATA) as client:
        readers = [Reader(client), Reader(client)]
        for reader in readers:
            await reader.until(1)
        assert max(counts) == 2
        await readers[0].close()
        await eventually(lambda: server.streams == 1)
    await readers[1].close()
    await eventually(lambda: server.streams == 0)
    assert counts == [1, 2, 1, 0]
    await server.stop(5)


async def test_streams_opened_and_left_leave_nothing_behind(
    source: DemandSignal, server: ScalerServer, client: ExternalScalerClient
) -> None:
    for _ in range(20):
        readers = [Reader(client) for _ in range(4)]
        await readers[0].until(1)
        source.publish(source.state.demand + 1)
        for reader in readers:
            await reader.close()
    await eventually(lambda: server.streams == 0)
    await eventually(lambda: not source._waiters)
    gc.collect()


async def test_s3_streams_are_bounded_and_unary_calls_go_on(
    source: DemandSignal, server: ScalerServer, client: ExternalScalerClient
) -> None:
    target = f"127.0.0.1:{server.port}"
    async with ExternalScalerClient(target, metadata=METADATA) as second:
        readers = [Reader(client) for _ in range(40)] + [Reader(second) for _ in range(40)]
        await eventually(lambda: sum(reader.task.done() for reader in readers) == 80 - 64)
        assert server.streams == 64
        refused = [reader.task.exception() for reader in readers if reader.task.done()]
        for error in refused:
            assert isinstance(error, grpc.aio.AioRpcError)
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await client.is_active() is False
        for reader in readers:
            await reader.close()


async def test_a_stream_is_accepted_before_there_is_anything_to_say(
    source: Any, server: ScalerServer
) -> None:
    from noctaya_api.externalscaler import externalscaler_pb2 as pb
    from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub

    source.known = False
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
        call = stub.StreamIsActive(pb.ScaledObjectRef(scalerMetadata=METADATA))
        await asyncio.wait_for(call.initial_metadata(), 30)
        await server.stop(5)
        assert await call.read() is grpc.aio.EOF  # type: ignore[attr-defined]
        assert await call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("transitions", [200])
async def test_a13_a_client_ends_at_the_last_state_after_many_transitions(
    source: DemandSignal, client: ExternalScalerClient, transitions: int
) -> None:
    reader = Reader(client)
    await reader.until(1)
    for number in range(transitions):
        source.publish(number % 2)
        await asyncio.sleep(0)
    source.publish(0)
    await asyncio.sleep(0.3)
    assert reader.said[-1] is False
    await reader.close()
