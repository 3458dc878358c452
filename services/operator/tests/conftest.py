"""Makes the fake API server importable as `fake_apiserver` and lends one with all the operator uses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fake_apiserver import FakeApiServer

# looptime asks for the current loop before tests that have none as well, which would make one nobody closes.
asyncio.set_event_loop(None)

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
async def fake_apiserver() -> AsyncIterator[FakeApiServer]:
    from fake_apiserver import FakeApiServer
    from noctaya_operator import kinds

    async with FakeApiServer(kinds.ALL) as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="record anew what is rendered")
