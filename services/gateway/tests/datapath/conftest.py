"""Fixtures of the data path tests: each test runs over both engines unless it asks for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from .stage import Backend, Handler, Stage

asyncio.set_event_loop(None)

MakeStage = Callable[..., Awaitable[Stage]]
MakeBackend = Callable[..., Awaitable[Backend]]


@pytest.fixture(params=["protocol", "asgi"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def backend() -> AsyncIterator[MakeBackend]:
    made: list[Backend] = []

    async def make(handler: Handler, **options: Any) -> Backend:
        one = Backend(handler)
        await one.start(**options)
        made.append(one)
        return one

    yield make
    for each in made:
        await each.stop()


@pytest.fixture
async def stage(engine: str, backend: MakeBackend) -> AsyncIterator[MakeStage]:
    made: list[Stage] = []

    async def make(**options: Any) -> Stage:
        one = Stage(engine=engine, **options)
        await one.server.start()
        made.append(one)
        return one

    yield make
    for each in made:
        await each.close()
