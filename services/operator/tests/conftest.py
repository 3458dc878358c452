"""Makes the fake API server importable as `fake_apiserver` and lends one with all the operator uses."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fake_apiserver import FakeApiServer

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
async def fake_apiserver() -> AsyncIterator[FakeApiServer]:
    from fake_apiserver import FakeApiServer
    from noctaya_operator import kinds

    async with FakeApiServer(kinds.ALL) as server:
        yield server
