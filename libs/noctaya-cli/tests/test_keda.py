"""The embedded KEDA against a scripted scaler, on a fake clock."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest
from noctaya_cli.events import EventKind
from noctaya_cli.keda import Keda
from noctaya_cli.scaling import Scaling, ScalingPolicy

pytestmark = pytest.mark.looptime


def unavailable() -> grpc.aio.AioRpcError:
    metadata = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, metadata, metadata, "demand is unknown", "")


class ScriptedScaler:
    """A scaler whose answers the test sets."""

    def __init__(self) -> None:
        self.demand: float | None = 0
        self.pushes: asyncio.Queue[bool | Exception | None] = asyncio.Queue()
        self.opened: list[float] = []
        self.polls = 0

    async def stream_is_active(self) -> AsyncGenerator[bool, None]:
        self.opened.append(round(asyncio.get_running_loop().time(), 3))
        while True:
            pushed = await self.pushes.get()
            if pushed is None:
                return
            if isinstance(pushed, Exception):
                raise pushed
            yield pushed

    async def is_active(self) -> bool:
        self.polls += 1
        if self.demand is None:
            raise unavailable()
        return self.demand > 0

    async def metric(self) -> float:
        if self.demand is None:
            raise unavailable()
        return self.demand


class Rig:
    def __init__(self, *, minimum: int = 0, maximum: int = 4, stabilization: float = 10) -> None:
        self.scaler = ScriptedScaler()
        self.replicas = -1
        self.events: list[tuple[EventKind, dict[str, Any]]] = []
        policy = ScalingPolicy(minimum=minimum, maximum=maximum, target=10, stabilization=stabilization)
        keda = Keda(
            self.scaler,
            scaling=Scaling(policy),
            scale=self.scale,
            emit=lambda kind, **details: self.events.append((kind, details)),
        )
        self.task = asyncio.create_task(keda.run())

    def scale(self, wanted: int) -> None:
        self.replicas = wanted

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


async def test_it_begins_with_the_minimum() -> None:
    rig = Rig(minimum=2)
    await asyncio.sleep(0.01)
    assert rig.replicas == 2
    await rig.stop()


async def test_a_push_wakes_at_once_and_polls_do_the_rest() -> None:
    rig = Rig()
    await asyncio.sleep(1)
    rig.scaler.demand = 35
    rig.scaler.pushes.put_nowait(True)
    await asyncio.sleep(0.01)
    assert rig.replicas == 1
    assert (EventKind.ACTIVATED, {"by": "push"}) in rig.events
    await asyncio.sleep(5)
    assert rig.replicas == 4
    await rig.stop()


async def test_a_lost_push_is_made_good_by_the_next_poll() -> None:
    rig = Rig()
    await asyncio.sleep(1)
    rig.scaler.demand = 1
    await asyncio.sleep(4.5)
    assert rig.replicas == 1
    assert (EventKind.ACTIVATED, {"by": "poll"}) in rig.events
    await rig.stop()


async def test_it_goes_to_zero_after_the_cooldown() -> None:
    rig = Rig(stabilization=10)
    rig.scaler.pushes.put_nowait(True)
    await asyncio.sleep(9)
    assert rig.replicas == 1
    await asyncio.sleep(6.5)
    assert rig.replicas == 0
    await rig.stop()


async def test_an_unavailable_scaler_changes_nothing_and_is_polled_on() -> None:
    rig = Rig(stabilization=10)
    rig.scaler.pushes.put_nowait(True)
    rig.scaler.demand = None
    await asyncio.sleep(101)
    assert rig.replicas == 1
    assert rig.scaler.polls == 21
    await rig.stop()


async def test_a_broken_stream_is_opened_again_after_2_s_doubling() -> None:
    rig = Rig()
    for _ in range(3):
        rig.scaler.pushes.put_nowait(unavailable())
    await asyncio.sleep(15)
    assert rig.scaler.opened == [0, 2, 6, 14]
    lost = [details for kind, details in rig.events if kind is EventKind.SCALER_LOST]
    assert lost == [{"reason": "UNAVAILABLE: demand is unknown"}]
    await rig.stop()


async def test_a_clean_end_resets_the_wait() -> None:
    rig = Rig()
    for pushed in (unavailable(), unavailable(), None, unavailable()):
        rig.scaler.pushes.put_nowait(pushed)
    await asyncio.sleep(12)
    assert rig.scaler.opened == [0, 2, 6, 8, 10]
    await rig.stop()


async def test_cancelling_closes_the_stream() -> None:
    rig = Rig()
    rig.scaler.pushes.put_nowait(True)
    await asyncio.sleep(1)
    await rig.stop()
    assert rig.task.cancelled()
