"""Fixtures of the CLI's tests."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# looptime asks for the current loop before tests that have none as well, which would make one nobody closes.
asyncio.set_event_loop(None)

FAKE_MODEL = Path(__file__).with_name("fake_model.py")


def is_alive(pid: int) -> bool:
    """A process that runs; a zombie doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def eventually(condition: Callable[[], bool], *, within: float = 20.0) -> None:
    """Wait until the condition holds; fails the test after `within` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        await asyncio.sleep(0.02)


def wait_for(condition: Callable[[], bool], *, within: float = 20.0) -> None:
    """The same for tests without an event loop."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.02)


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NOCTAYA_")}


@pytest.fixture
def fake_model() -> list[str]:
    return [sys.executable, "-I", "-S", str(FAKE_MODEL)]
