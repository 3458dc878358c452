"""The controller in virtual time: nothing one item does stops its worker."""

from __future__ import annotations

import asyncio
import logging

import pytest
from noctaya_operator.kube.controller import DONE, Controller, Result, TerminalError
from noctaya_operator.kube.errors import Conflict, TooManyRequests
from noctaya_operator.kube.metrics import KubeMetrics
from noctaya_operator.kube.workqueue import WorkQueue
from prometheus_client import CollectorRegistry

pytestmark = pytest.mark.looptime


class Script:
    """A reconcile that does what it is told, call by call, and records when it was called."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.calls: list[tuple[str, float]] = []
        self.running = 0
        self.most_running = 0

    async def __call__(self, key: str) -> Result:
        self.calls.append((key, round(asyncio.get_running_loop().time(), 3)))
        step = self.steps.pop(0) if self.steps else DONE
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
                return DONE
            return step  # type: ignore[return-value]
        finally:
            self.running -= 1


class Rig:
    def __init__(self, script: Script, **options: float) -> None:
        self.registry = CollectorRegistry()
        metrics = KubeMetrics(self.registry)
        observer = metrics.queue("c")
        self.queue: WorkQueue[str] = WorkQueue(observer=observer)
        observer.attach(self.queue)
        self.controller = Controller(
            "c",
            script,
            queue=self.queue,
            observer=metrics.controller("c"),
            **options,  # type: ignore[arg-type]
        )

    def value(self, sample: str, /, **labels: str) -> float:
        return self.registry.get_sample_value(sample, labels) or 0.0

    async def run_for(self, seconds: float, *keys: str) -> None:
        for key in keys:
            self.queue.add(key)
        task = asyncio.create_task(self.controller.run())
        await asyncio.sleep(seconds)
        assert not task.done(), "a worker died"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_success_is_done_once() -> None:
    script = Script()
    rig = Rig(script)
    await rig.run_for(5000, "a")
    assert script.calls == [("a", 0.0)]
    assert rig.value("controller_runtime_reconcile_total", controller="c", result="success") == 1


async def test_requeue_after_comes_back_then() -> None:
    script = Script(Result(requeue_after=30.0))
    await Rig(script).run_for(100, "a")
    assert script.calls == [("a", 0.0), ("a", 30.0)]


async def test_errors_come_back_with_growing_delays_and_success_resets_them() -> None:
    script = Script(
        Conflict(409), Conflict(409), RuntimeError("odd"), Result(requeue_after=1.0), Conflict(409)
    )
    rig = Rig(script)
    await rig.run_for(100, "a")
    assert [time for _, time in script.calls] == [0.0, 0.005, 0.015, 0.035, 1.035, 1.04]
    assert rig.value("controller_runtime_reconcile_errors_total", controller="c") == 4
    assert rig.value("controller_runtime_reconcile_panics_total", controller="c") == 1
    assert rig.value("workqueue_retries_total", name="c", controller="c") == 4


async def test_a_throttled_reconcile_waits_as_long_as_the_server_asked() -> None:
    script = Script(TooManyRequests(429, retry_after=7.0))
    await Rig(script).run_for(100, "a")
    assert script.calls == [("a", 0.0), ("a", 7.0)]


async def test_a_terminal_error_waits_for_a_change() -> None:
    script = Script(TerminalError("no such runtime"))
    rig = Rig(script)
    await rig.run_for(5000, "a")
    assert script.calls == [("a", 0.0)]
    assert rig.value("controller_runtime_terminal_reconcile_errors_total", controller="c") == 1


@pytest.mark.parametrize("fault", [ZeroDivisionError(), asyncio.CancelledError(), "no result at all"])
async def test_nothing_unforeseen_in_one_item_stops_the_worker(
    fault: object, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(fault)
    rig = Rig(script)
    with caplog.at_level(logging.CRITICAL):
        await rig.run_for(1, "a", "b")
    assert [key for key, _ in script.calls] == ["a", "b", "a"]
    assert rig.value("controller_runtime_reconcile_panics_total", controller="c") == 1


async def test_a_reconcile_that_hangs_is_ended_and_tried_again() -> None:
    script = Script(1e6)
    rig = Rig(script, timeout=120.0)
    await rig.run_for(200, "a")
    assert script.calls == [("a", 0.0), ("a", 120.005)]
    assert rig.value("controller_runtime_reconcile_timeouts_total", controller="c") == 1


async def test_workers_share_the_keys_and_none_works_on_the_same() -> None:
    script = Script(*[10.0] * 6)
    rig = Rig(script, workers=3)
    await rig.run_for(25, *"abcdef")
    assert script.most_running == 3
    assert [time for _, time in script.calls] == [0.0] * 3 + [10.0] * 3


async def test_stopping_lets_running_reconciles_finish_within_the_grace() -> None:
    finished: list[str] = []

    async def reconcile(key: str) -> Result:
        await asyncio.sleep(2.0 if key == "quick" else 1000.0)
        finished.append(key)
        return DONE

    queue: WorkQueue[str] = WorkQueue()
    controller = Controller("c", reconcile, queue=queue, workers=2, stop_grace=3.0)
    for key in ("quick", "slow", "waiting"):
        queue.add(key)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["quick"]
    assert asyncio.get_running_loop().time() == 4.0


async def test_depth_and_running_work_are_read_at_scrape_time() -> None:
    rig = Rig(Script(1e6), timeout=1e9)
    for key in "abc":
        rig.queue.add(key)
    task = asyncio.create_task(rig.controller.run())
    await asyncio.sleep(50)
    labels = {"name": "c", "controller": "c"}
    assert rig.value("workqueue_depth", **labels) == 2
    assert rig.value("workqueue_adds_total", **labels) == 3
    assert rig.value("workqueue_longest_running_processor_seconds", **labels) == 50
    assert rig.value("controller_runtime_active_workers", controller="c") == 1
    assert rig.value("controller_runtime_max_concurrent_reconciles", controller="c") == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
