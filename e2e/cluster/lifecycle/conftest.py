"""A real host cluster of its own, beside whatever else is on this machine. Needs root on Linux."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from noctaya_cluster.host.cluster import HostCluster

sys.path.insert(0, str(Path(__file__).parent))  # machine_state


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    """A state folder on the disk of the cache: it gets images."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noctaya"
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cluster-test-", dir=cache))
    yield folder / "state"
    HostCluster(folder / "state").stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cluster(state: Path) -> HostCluster:
    """Not started by the fixture."""
    return HostCluster(state)
