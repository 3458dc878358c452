"""One real aggregate scaler on loopback, its report client, and a clock the test can move."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from noctaya_aggregate_scaler.app import AggregateScaler
from noctaya_aggregate_scaler.settings import ScalerSettings
from noctaya_api.externalscaler.client import ExternalScalerClient

# looptime's plugin asks for the current loop before every test; on Python 3.11 that makes one for good.
asyncio.set_event_loop(None)

TOKEN = "t" * 43


class Clock:
    """Monotonic seconds that stand still until the test moves them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scaler:
    """A running scaler and short ways to talk to it."""

    def __init__(self, settings: ScalerSettings, clock: Clock) -> None:
        self.app = AggregateScaler(settings, clock=clock)
        self.clock = clock
        self.http: httpx.AsyncClient

    async def start(self) -> None:
        await self.app.start()
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.app.http_port}", timeout=30, trust_env=False
        )

    async def stop(self) -> None:
        await self.http.aclose()
        await self.app.stop()

    async def post(self, content: bytes, token: str = TOKEN) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}"}
        return await self.http.post("/v1/demand", content=content, headers=headers)

    async def report(self, member: str, sequence: int, demand: int) -> int:
        body = {"memberID": member, "sequence": sequence, "demand": demand}
        headers = {"authorization": f"Bearer {TOKEN}"}
        return (await self.http.post("/v1/demand", json=body, headers=headers)).status_code

    async def metrics(self) -> dict[str, float]:
        text = (await self.http.get("/metrics")).text
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines if name.startswith("noctaya_")}

    def keda(self) -> ExternalScalerClient:
        return ExternalScalerClient(
            f"127.0.0.1:{self.app.grpc_port}", metadata={"targetValue": "5"}, timeout=30
        )


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"  {TOKEN}\n")
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def overrides() -> dict[str, Any]:
    """Settings a test wants to be different; parametrize it."""
    return {}


@pytest.fixture
def settings(token_file: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> ScalerSettings:
    return ScalerSettings(
        **{
            "aggregator_listen_addr": "127.0.0.1:0",
            "scaler_listen_addr": "127.0.0.1:0",
            "demand_auth_token_file": token_file,
            **overrides,
        }
    )


@pytest.fixture
async def scaler(settings: ScalerSettings, clock: Clock) -> AsyncIterator[Scaler]:
    scaler = Scaler(settings, clock)
    await scaler.start()
    yield scaler
    await scaler.stop()
