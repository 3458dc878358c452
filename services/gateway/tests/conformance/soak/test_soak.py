"""Half a minute of clients leaving at random must leave nothing: no demand, no connection, no memory.

The backend goes to sleep and wakes all the time, so that every phase meets clients that leave: while sending,
held before and after the first heartbeat, waiting for the backend, in the middle of a stream.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

import pytest

from ..conftest import Start
from ..harness.backend import Call
from ..harness.client import STREAM_BODY, Client, open_client
from ..harness.process import eventually
from ..harness.rig import Rig
from ..harness.wire import WireEndError

SECONDS = 30.0
CLIENTS = 24
KIB = 1024


SETTINGS = {
    "NOCTAYA_HEARTBEAT_INTERVAL": "150ms",
    "NOCTAYA_ACTIVATION_TIMEOUT": "20s",
    "NOCTAYA_MAX_QUEUE": "64",
    "NOCTAYA_RELEASE_RATE": "200",
}


async def act(call: Call) -> None:
    """Answer at once, late, or as a stream that may last longer than its client."""
    choice = random.random()
    if choice < 0.3:
        call.reply(b"x" * random.choice([10, 3000, 200_000]))
    elif choice < 0.5:
        await asyncio.sleep(random.random() * 0.4)
        call.reply(b"late")
    else:
        await call.stream([b"data: {}\n\n"] * random.randrange(1, 30) + [b"data: [DONE]\n\n"], pause=0.02)


class Visitor:
    """One client slot of the crowd, used by one client after the other."""

    def __init__(self, port: int, seen: Counter[str], choose: random.Random) -> None:
        self._port = port
        self._seen = seen
        self._choose = choose

    async def visit_until(self, over: Callable[[], bool]) -> None:
        while not over():
            client = await open_client(self._port)
            try:
                await self._visit(client)
            except (WireEndError, TimeoutError):
                self._seen["cut or too slow"] += 1
            finally:
                client.leave(reset=self._choose.random() < 0.3 and client.wire.open)

    async def _visit(self, client: Client) -> None:
        choose = self._choose
        body = choose.choice([STREAM_BODY, STREAM_BODY, b"{}", b'{"pad":"' + b"y" * 300_000 + b'"}'])
        if choose.random() < 0.15:
            client.request(headers=[(b"Content-Length", b"500000")], body=None)
            client.send(body)
            await asyncio.sleep(choose.random() * 0.2)
            self._seen["left while sending"] += 1
            return
        client.request(body=body)
        patience = choose.choice([0.0, 0.02, 0.1, 0.3, 0.8, 20.0, 20.0])
        try:
            async with asyncio.timeout(patience):
                reply = await client.reply(within=60)
        except TimeoutError:
            self._seen["left" if patience < 20 else "never answered"] += 1
        else:
            self._seen[str(reply.status)] += 1
            if not reply.body.complete:
                self._seen["truncated"] += 1


async def sleep_and_wake(rig: Rig, over: Callable[[], bool]) -> None:
    while not over():
        await asyncio.sleep(random.random() * 1.5)
        rig.backend.set_healthy(False)
        await asyncio.sleep(random.random() * 0.8)
        rig.backend.set_healthy(True)


@pytest.mark.timeout(180)
async def test_soak_of_clients_leaving_at_random_leaves_nothing(
    start: Start, record_property: object
) -> None:
    rig = await start(**SETTINGS)
    rig.backend.script = act
    begun = time.monotonic()
    sizes: list[tuple[float, int]] = []

    def over() -> bool:
        return time.monotonic() - begun > SECONDS

    async def weigh() -> None:
        while not over():
            sizes.append((time.monotonic() - begun, rig.gateway.rss()))
            rig.backend.calls.clear()
            await asyncio.sleep(0.5)

    seen: Counter[str] = Counter()
    seeds = random.Random(20)
    crowd = [Visitor(rig.gateway.port, seen, random.Random(seeds.random())) for _ in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for visitor in crowd:
            group.create_task(visitor.visit_until(over))
        group.create_task(sleep_and_wake(rig, over))
        group.create_task(weigh())
    rig.backend.set_healthy(True)

    async def at_rest() -> bool:
        return await rig.gateway.admitted() == 0 and await rig.gateway.demand() == 0

    await eventually(at_rest, within=10)

    def upstream_at_work() -> int:
        return sum(1 for call in rig.backend.calls if not call.answered and call.wire.open)

    assert upstream_at_work() == 0
    assert await rig.gateway.metric("noctaya_gateway_buffered_bytes") == 0
    assert await rig.gateway.metric("noctaya_gateway_held") == 0
    assert seen["never answered"] == 0
    assert seen["truncated"] == 0
    assert not {status for status in seen if status.isdigit()} - {"200", "429", "502", "503"}
    assert seen["200"] > 100
    assert rig.gateway.crashes == []
    assert rig.backend.faults == []
    grown = growth(sizes)
    assert callable(record_property)
    record_property("visits", dict(seen))
    record_property("KiB grown", grown // KIB)
    assert grown < 8192 * KIB, f"memory grew by {grown // KIB} KiB"
    await pool_is_small(rig)


async def pool_is_small(rig: Rig) -> None:
    """Idle connections may stay pooled, one for each call that ran at once, no more."""
    still_open = sum(1 for wire in rig.backend.wires if wire.open)
    assert still_open <= CLIENTS + 2


def growth(sizes: list[tuple[float, int]]) -> int:
    """Bytes between the peaks of the middle and of the last third.

    Peaks, because garbage is collected in steps; the first third is the pools' and the allocator's.
    """
    third = len(sizes) // 3
    return max(size for _, size in sizes[-third:]) - max(size for _, size in sizes[third : 2 * third])
