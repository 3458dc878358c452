from __future__ import annotations

import asyncio

import pytest
from noctaya_gateway import delivery as delivery_module
from noctaya_gateway.delivery import SCALER_PATIENCE, Delivery, watch

from .servers import until


class Rig:
    def __init__(self, *, patience: float) -> None:
        self.now = 1000.0
        self.demand = 0
        self.delivery = Delivery(
            clock=lambda: self.now, demand=lambda: self.demand, channel="test", patience=patience
        )


def test_g12_a_failed_report_is_undelivered_demand_until_one_succeeds() -> None:
    rig = Rig(patience=0)
    rig.demand = 1
    assert rig.delivery.delivered is None, "nothing was tried yet"
    rig.delivery.failed("status 404")
    rig.now += 3
    assert rig.delivery.undelivered_seconds == 3
    assert rig.delivery.delivered is False
    assert rig.delivery.last_error == "status 404"
    rig.delivery.told()
    assert rig.delivery.undelivered_seconds == 0
    assert rig.delivery.delivered is True
    assert rig.delivery.last_error == ""


def test_failures_without_demand_are_no_undelivered_demand() -> None:
    rig = Rig(patience=0)
    rig.delivery.failed("timeout")
    rig.now += 100
    assert rig.delivery.undelivered_seconds == 0
    assert rig.delivery.failing_seconds == 100
    assert rig.delivery.delivered is False
    rig.demand = 1
    assert rig.delivery.undelivered_seconds == 0
    rig.now += 2
    assert rig.delivery.undelivered_seconds == 2


def test_g12_a_scaler_nobody_asks_is_undelivered_demand_after_some_patience() -> None:
    rig = Rig(patience=SCALER_PATIENCE)
    rig.demand = 1
    assert rig.delivery.undelivered_seconds == 0
    rig.now += SCALER_PATIENCE - 0.1
    assert rig.delivery.delivered is None
    rig.now += 0.1
    assert rig.delivery.undelivered_seconds == SCALER_PATIENCE
    assert rig.delivery.delivered is False
    rig.delivery.told()
    assert rig.delivery.delivered is True
    assert rig.delivery.undelivered_seconds == 0


def test_an_open_stream_delivers_by_itself() -> None:
    rig = Rig(patience=SCALER_PATIENCE)
    rig.demand = 1
    rig.delivery.streams(1)
    rig.now += 100
    assert rig.delivery.undelivered_seconds == 0
    assert rig.delivery.delivered is True
    rig.delivery.streams(0)
    assert rig.delivery.undelivered_seconds == 0
    rig.now += SCALER_PATIENCE
    assert rig.delivery.undelivered_seconds == SCALER_PATIENCE


def test_the_time_counts_from_the_demand_not_from_the_silence_before() -> None:
    rig = Rig(patience=SCALER_PATIENCE)
    assert rig.delivery.undelivered_seconds == 0
    rig.now += 3600
    rig.demand = 1
    assert rig.delivery.undelivered_seconds == 0
    rig.now += 7
    assert rig.delivery.undelivered_seconds == 7


async def test_g12_a_way_that_is_broken_without_demand_is_logged_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery_module, "WATCH_INTERVAL", 0.005)
    rig = Rig(patience=0)
    task = asyncio.create_task(watch(rig.delivery))
    rig.delivery.failed("timeout")
    rig.now += 1
    await until(lambda: "could not be delivered" in caplog.text)
    task.cancel()
    await asyncio.wait([task])


async def test_g12_the_log_says_so_and_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(delivery_module, "WATCH_INTERVAL", 0.005)
    rig = Rig(patience=0)
    task = asyncio.create_task(watch(rig.delivery))
    rig.demand = 1
    rig.delivery.undelivered_seconds  # noqa: B018  somebody looked: demand is known to be there
    rig.delivery.failed("status 404")
    rig.now += 1
    await until(lambda: "demand is not delivered" in caplog.text)
    await asyncio.sleep(0.05)
    assert caplog.text.count("demand is not delivered") == 1
    rig.delivery.told()
    await until(lambda: "demand is delivered again" in caplog.text)
    task.cancel()
    await asyncio.wait([task])
