"""One hub with one repository, and an environment that no test shares with this machine."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from noctaya_model_hub import Hub, Served

from .kit import FILES, REPOSITORY, hub_beside

# The machine may be busy: an example's time says nothing, and a slow one is no fault.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
# looptime's plugin asks for the current loop before every test; on Python 3.11 that makes one for good.
asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        hubs = name.startswith(("HF_", "AWS_", "MODELSCOPE_", "NOCTAYA_"))
        if hubs or name.lower().endswith(("_proxy", "_ca_bundle")) or name.startswith("SSL_CERT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "no-home"))


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    made.create(REPOSITORY, FILES)
    return made


@pytest.fixture
def served(hub: Hub) -> Iterator[Served]:
    with hub_beside(hub) as running:
        yield running


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder / "the-model"
