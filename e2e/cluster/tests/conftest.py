"""Recorded commands for every test; nothing here needs root or a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_commands import FakeCommands


@pytest.fixture
def commands() -> FakeCommands:
    """What is run is recorded."""
    return FakeCommands()
