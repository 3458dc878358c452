"""Signals of a run, without services."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from noctaya_cli.embedded import Embedded, first_error


@pytest.fixture
def silenced_hangup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def audible_hangup() -> Iterator[None]:
    """As in a terminal, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_run(number: signal.Signals, audible_hangup: None) -> None:
    told: list[str] = []
    running = asyncio.create_task(Embedded([], stopping=lambda: told.append("stopping")).run())
    await asyncio.sleep(0)
    os.kill(os.getpid(), number)
    await asyncio.wait_for(running, 20)
    assert told == ["stopping"]


async def test_under_nohup_a_hangup_is_ignored(silenced_hangup: None) -> None:
    running = asyncio.create_task(Embedded([], stopping=lambda: None).run())
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.sleep(0.1)
    assert not running.done()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(running, 20)


def test_the_first_error_of_nested_groups_is_found() -> None:
    error = OSError("disk")
    assert first_error(ExceptionGroup("a", [ExceptionGroup("b", [error]), ValueError()])) is error
    assert first_error(error) is error
