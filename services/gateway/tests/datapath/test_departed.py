"""A pod that is gone: its address answers nothing, and no request waits for it to (behaviour G7)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from noctaya_gateway.balancer import Address
from noctaya_gateway.uplink import GIVE_UP_SECONDS
from noctaya_gateway.upstream import pool
from noctaya_gateway.upstream.connection import UpstreamConnection
from noctaya_gateway.upstream.pool import CONNECT_TIMEOUT

from .conftest import MakeBackend, MakeStage
from .stage import Stage, ok, post, replying, until

WELL_BEFORE = CONNECT_TIMEOUT - 1.0
"""Seconds: later than that and it was the connect's timeout that helped."""


@pytest.fixture
def gone() -> Iterator[Address]:
    """An address that answers no connect, as that of a pod that was deleted: its backlog is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = Address(*listener.getsockname())
        waiting = []
        try:
            for _ in range(4):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(address)
                waiting.append(one)
            yield address
        finally:
            for one in waiting:
                one.close()


def believe_in(gateway: Stage, address: Address) -> None:
    """The gateway has not noticed yet that the pod is gone."""
    gateway.balancer.set_addresses([address])
    gateway.balancer.mark(address, ready=True)


async def test_g7_an_address_that_answers_no_connect_is_doubted_at_once(
    stage: MakeStage, gone: Address
) -> None:
    gateway = await stage()
    believe_in(gateway, gone)
    doubted = asyncio.Event()
    gateway.balancer.subscribe(suspect=lambda address: doubted.set())
    _, writer = await gateway.connect()
    writer.write(post())
    async with asyncio.timeout(WELL_BEFORE):
        await doubted.wait()


async def test_g7_a_request_under_way_to_an_address_that_left_goes_elsewhere_at_once(
    stage: MakeStage, backend: MakeBackend, gone: Address
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    believe_in(gateway, gone)
    asking = asyncio.create_task(gateway.ask(post()))
    await until(lambda: gateway.balancer.in_flight(gone) == 1)
    gateway.warm(server)
    async with asyncio.timeout(WELL_BEFORE):
        assert (await asking).endswith(b"ok")


async def test_g7_a_request_under_way_to_the_last_address_is_held_when_that_leaves(
    stage: MakeStage, backend: MakeBackend, gone: Address
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    believe_in(gateway, gone)
    asking = asyncio.create_task(gateway.ask(post()))
    await until(lambda: gateway.balancer.in_flight(gone) == 1)
    async with asyncio.timeout(WELL_BEFORE):
        gateway.balancer.set_addresses([])
        await until(lambda: len(gateway.line) == 1)
        assert gateway.activation.pending
        gateway.warm(server)
        assert (await asking).endswith(b"ok")


async def test_g7_a_request_to_an_address_that_answers_neither_connect_nor_probe_is_held_with_heartbeats(
    stage: MakeStage, backend: MakeBackend, gone: Address
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage(heartbeat_interval=0.2)
    believe_in(gateway, gone)
    reader, writer = await gateway.connect()
    writer.write(post(b'{"stream": true}'))
    async with asyncio.timeout(WELL_BEFORE):
        assert b"200" in await reader.readuntil(b"\r\n\r\n")
        assert b": heartbeat\n" in await reader.readuntil(b"heartbeat\n")
    assert len(gateway.line) == 1
    assert gateway.pool.open_connections == 0
    gateway.balancer.set_addresses([])
    await until(lambda: gateway.activation.pending)
    gateway.warm(server)
    assert b"ok" in await asyncio.wait_for(reader.read(), WELL_BEFORE)


async def test_g7_a_connect_goes_on_when_the_probe_is_answered(stage: MakeStage, gone: Address) -> None:
    gateway = await stage()
    believe_in(gateway, gone)
    gateway.balancer.subscribe(
        suspect=lambda address: asyncio.get_running_loop().call_soon(
            lambda: gateway.balancer.mark(address, ready=True)
        )
    )
    _, writer = await gateway.connect()
    writer.write(post())
    await until(lambda: gateway.balancer.in_flight(gone) == 1)
    await asyncio.sleep(GIVE_UP_SECONDS + 0.5)
    assert gateway.balancer.in_flight(gone) == 1
    assert len(gateway.line) == 0


async def test_g3_a_safe_request_that_can_not_be_held_waits_for_its_connect(
    stage: MakeStage, gone: Address
) -> None:
    gateway = await stage()
    believe_in(gateway, gone)
    _, writer = await gateway.connect()
    writer.write(b"GET /v1/anything HTTP/1.1\r\nHost: model\r\n\r\n")
    await until(lambda: gateway.balancer.in_flight(gone) == 1)
    await asyncio.sleep(GIVE_UP_SECONDS + 0.5)
    assert gateway.balancer.in_flight(gone) == 1


async def test_g7_a_connect_that_is_not_answered_is_made_anew(
    stage: MakeStage, backend: MakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "REDIAL_SECONDS", 0.05)
    server = await backend(replying(ok()))
    gateway = await stage()
    gateway.warm(server)
    dial, dialled = gateway.pool._dial, []

    async def bound_to_a_pod_that_is_gone(address: Address, within: float) -> UpstreamConnection:
        dialled.append(within)
        if len(dialled) == 1:
            async with asyncio.timeout(within):
                await asyncio.Event().wait()
        return await dial(address, within)

    monkeypatch.setattr(gateway.pool, "_dial", bound_to_a_pod_that_is_gone)
    assert (await gateway.ask(post())).endswith(b"ok")
    assert dialled == [0.05, pytest.approx(CONNECT_TIMEOUT - 0.05)]


async def test_g5_a_client_that_leaves_before_the_connect_is_answered_frees_its_slot(
    stage: MakeStage, gone: Address
) -> None:
    gateway = await stage()
    believe_in(gateway, gone)
    _, writer = await gateway.connect()
    writer.write(post())
    await until(lambda: gateway.balancer.in_flight(gone) == 1)
    writer.close()
    async with asyncio.timeout(WELL_BEFORE):
        await until(gateway.at_rest)
    gateway.balancer.set_addresses([])
    assert len(gateway.line) == 0


@pytest.fixture
def refusing() -> Iterator[Address]:
    """An address that refuses every connect, as that of a Service without Pods."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Address(*bound.getsockname())


async def test_t1_who_finds_nobody_at_the_service_once_the_last_pod_is_gone_begins_an_activation(
    stage: MakeStage, backend: MakeBackend, refusing: Address
) -> None:
    server = await backend(replying(ok()))
    gateway = await stage()
    gateway.balancer.set_addresses((), backup=(refusing,))
    gateway.balancer.mark(refusing, ready=True)  # by the pod that was there until a moment ago
    asking = asyncio.create_task(gateway.ask(post()))
    async with asyncio.timeout(WELL_BEFORE):
        await until(lambda: len(gateway.line) == 1)
        assert gateway.activation.pending
        gateway.warm(server)
        answer = await asking
    assert answer.endswith(b"ok")
    assert b"x-noctaya-activation-id: " in answer.lower()
