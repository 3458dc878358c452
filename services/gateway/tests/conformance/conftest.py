"""Fixtures of the conformance suite; every test that depends on the HTTP engine runs over both.

All coroutines of one pytest worker share a loop, because gateways and backends are lent from test to test.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from pathlib import Path
from typing import IO

import pytest
import pytest_asyncio

from .harness.backend import FakeBackend
from .harness.rig import Rig, Rigs, start_rig

# looptime's plugin would otherwise leave a loop of its own unclosed.
asyncio.set_event_loop(None)

HERE = Path(__file__).parent
ENGINES = ("asgi", "protocol")

Start = Callable[..., Awaitable[Rig]]
Lend = Callable[..., Awaitable[Rig]]
Backends = Callable[..., FakeBackend]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    shared_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(shared_loop, append=False)
    # One engine after the other within a file, so that shared gateways are used while they live.
    items.sort(
        key=lambda item: (
            (str(item.path), "[protocol" in item.name) if HERE in item.path.parents else ("", False)
        )
    )


ONE_ENGINE = pytest.mark.parametrize("engine", ["protocol"], indirect=True)
"""For what both engines share (settings, prober, reporter, ExternalScaler), or what ASGI can't express."""


RIGS = pytest.StashKey[list[Rig]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what its gateways logged."""
    report = yield
    if report.failed:
        for rig in item.stash.get(RIGS, []):
            report.sections.append(("gateway log", "\n".join(rig.gateway.lines[-40:])))
    return report


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The engine under test."""
    return str(request.param)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def rigs() -> AsyncIterator[Rigs]:
    kept = Rigs()
    yield kept
    await kept.close()


@pytest_asyncio.fixture(loop_scope="session")
async def backends() -> AsyncIterator[Callable[..., FakeBackend]]:
    """Further backends of a test: `second = backends(healthy=False)`, not started yet."""
    made: list[FakeBackend] = []

    def make(*, healthy: bool = True) -> FakeBackend:
        made.append(FakeBackend(healthy=healthy))
        return made[-1]

    yield make
    for backend in made:
        await backend.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def start(request: pytest.FixtureRequest, engine: str) -> AsyncIterator[Start]:
    """Start a gateway of this test's own: `rig = await start(healthy=False, NOCTAYA_MAX_QUEUE="1")`."""
    started: list[Rig] = []

    async def start_one(
        *, healthy: bool = True, stdout: IO[bytes] | int = subprocess.DEVNULL, **env: str
    ) -> Rig:
        rig = await start_rig(engine, env, healthy=healthy, stdout=stdout)
        started.append(rig)
        request.node.stash[RIGS] = started
        return rig

    yield start_one
    for rig in started:
        await rig.stop()
    for rig in started:
        assert_sound(rig)


@pytest_asyncio.fixture(loop_scope="session")
async def lend(request: pytest.FixtureRequest, engine: str, rigs: Rigs) -> AsyncIterator[Lend]:
    """Borrow a gateway with this environment; it must be left at rest."""
    lent: list[Rig] = []

    async def lend_one(*, healthy: bool = True, **env: str) -> Rig:
        rig = await rigs.lend(engine, env, healthy=healthy)
        lent.append(rig)
        request.node.stash[RIGS] = lent
        return rig

    yield lend_one
    for rig in lent:
        await rigs.give_back(rig)
        assert_sound(rig)


@pytest_asyncio.fixture(loop_scope="session")
async def warm(lend: Lend) -> Rig:
    """A shared gateway with default settings and a ready backend."""
    return await lend()


COLD: Mapping[str, str] = {"NOCTAYA_HEARTBEAT_INTERVAL": "250ms", "NOCTAYA_ACTIVATION_TIMEOUT": "60s"}


@pytest_asyncio.fixture(loop_scope="session")
async def cold(lend: Lend) -> Rig:
    """A shared gateway whose backend is not ready; a heartbeat every 250 ms, patience for a minute."""
    return await lend(healthy=False, **COLD)


def assert_sound(rig: Rig) -> None:
    """What must hold after every test, whatever it did."""
    assert rig.gateway.crashes == []
    assert rig.backend.faults == []
