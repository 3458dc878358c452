"""When probes are attempted, on a fake clock."""

import asyncio
from collections.abc import Mapping

import pytest
from noctaya_cli.probe_attempt import ProbeFailed
from noctaya_cli.probe_loop import ProbeLoop
from noctaya_cli.probes import Exec, Health, HttpGet, Probe, Probes

pytestmark = pytest.mark.looptime


class Scripted:
    """Answers by path; remembers when it was asked."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.asked: list[tuple[str, float]] = []

    async def __call__(self, probe: Probe, *, port: int, env: Mapping[str, str]) -> None:
        name = probe.action.path if isinstance(probe.action, HttpGet) else "exec"
        self.asked.append((name, asyncio.get_running_loop().time()))
        if name in self.failing:
            raise ProbeFailed("status 503")

    def times(self, name: str) -> list[float]:
        return [round(at, 3) for asked, at in self.asked if asked == name]


def loop_for(probes: Probes, attempt: Scripted) -> tuple[ProbeLoop, Health]:
    health = Health(probes)
    return ProbeLoop(health, port=1, env={}, attempt=attempt, changed=lambda: None), health


async def test_a_startup_probe_that_never_succeeds_ends_it_after_threshold_times_period() -> None:
    attempt = Scripted()
    attempt.failing = {"/s"}
    probing, _ = loop_for(Probes(startup=Probe(HttpGet("/s"), period=10, failure_threshold=3)), attempt)
    reason = await probing.run()
    assert reason == "startup probe failed 3 times: status 503"
    assert asyncio.get_running_loop().time() == pytest.approx(20, abs=0.2)


async def test_readiness_is_noticed_between_two_attempts_of_the_schedule() -> None:
    attempt = Scripted()
    attempt.failing = {"/s"}
    probes = Probes(startup=Probe(HttpGet("/s")), readiness=Probe(HttpGet("/r")))
    probing, health = loop_for(probes, attempt)
    task = asyncio.create_task(probing.run())
    await asyncio.sleep(1.03)
    attempt.failing = set()
    await asyncio.sleep(0.15)
    assert health.ready
    task.cancel()


async def test_exec_probes_keep_to_their_schedule() -> None:
    attempt = Scripted()
    attempt.failing = {"exec"}
    probes = Probes(startup=Probe(Exec(("true",)), period=5, failure_threshold=3))
    probing, _ = loop_for(probes, attempt)
    await probing.run()
    assert attempt.times("exec") == [0, 5, 10]


async def test_the_first_attempt_waits_for_the_initial_delay() -> None:
    attempt = Scripted()
    probing, _ = loop_for(Probes(startup=Probe(HttpGet("/s"), initial_delay=7)), attempt)
    task = asyncio.create_task(probing.run())
    await asyncio.sleep(8)
    assert attempt.times("/s") == [7]
    task.cancel()


async def test_a_ready_replica_is_probed_at_its_period_only() -> None:
    attempt = Scripted()
    probing, health = loop_for(Probes(readiness=Probe(HttpGet("/r"), period=5)), attempt)
    task = asyncio.create_task(probing.run())
    await asyncio.sleep(11)
    assert health.ready
    assert attempt.times("/r") == [0, 5, 10]
    task.cancel()


async def test_liveness_ends_it_and_readiness_does_not() -> None:
    attempt = Scripted()
    probes = Probes(
        readiness=Probe(HttpGet("/r"), period=1), liveness=Probe(HttpGet("/l"), period=2, failure_threshold=2)
    )
    probing, health = loop_for(probes, attempt)
    task = asyncio.create_task(probing.run())
    await asyncio.sleep(4.5)
    attempt.failing = {"/r"}
    await asyncio.sleep(4)
    assert not health.ready
    assert not task.done()
    attempt.failing = {"/l"}
    assert await task == "liveness probe failed 2 times: status 503"


@pytest.mark.parametrize("offset", [0.0, 1e-7, 1e-6, 2e-6, 0.1 + 1e-9])
async def test_a_wake_up_a_clock_tick_early_is_the_attempt_and_no_busy_loop(offset: float) -> None:
    await asyncio.sleep(offset)
    attempt = Scripted()
    attempt.failing = {"/s"}
    probing, _ = loop_for(
        Probes(startup=Probe(HttpGet("/s"), period=0.1 + offset, failure_threshold=100)), attempt
    )
    async with asyncio.timeout(60):
        await probing.run()
    assert len(attempt.asked) <= 250
