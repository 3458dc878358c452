"""What the tests of OCI staging share: `oci_artifacts` as a module, a run, an empty cache."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings

sys.path.insert(0, str(Path(__file__).parent))

from oci_artifacts import LayoutWriter

# looptime's plugin asks for the current loop before every test; on Python 3.11 that makes one for good.
asyncio.set_event_loop(None)


@pytest.fixture
def new_run(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Run]:
    monkeypatch.setenv("NOCTAYA_PREWARM_DISK_MARGIN", "0")
    return lambda: Run(AgentSettings())


@pytest.fixture
def run(new_run: Callable[[], Run]) -> Run:
    return new_run()


@pytest.fixture
def layout(tmp_path: Path) -> LayoutWriter:
    return LayoutWriter(tmp_path / "staging")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    made = tmp_path / "cache" / "oci"
    made.mkdir(parents=True)
    return made
