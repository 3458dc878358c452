"""A scaler on loopback and a client of it, over a signal that the test publishes to."""

from collections.abc import AsyncIterator

import pytest
from noctaya_api.demand.signal import DemandSignal, DemandState
from noctaya_api.externalscaler.client import ExternalScalerClient
from noctaya_api.externalscaler.server import ScalerServer

METADATA = {"metricName": "pending", "targetValue": "5"}


class Source(DemandSignal):
    """A signal that can be unknown; it then answers `changed` with None at once."""

    def __init__(self) -> None:
        super().__init__()
        self.known = True
        self.asked = 0

    def snapshot(self) -> DemandState | None:  # type: ignore[override]
        return self.state if self.known else None

    async def changed(self, after: int) -> DemandState | None:  # type: ignore[override]
        self.asked += 1
        return await super().changed(after) if self.known else None


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def server(source: Source) -> AsyncIterator[ScalerServer]:
    server = ScalerServer(source, listen="127.0.0.1:0", repeat=0.1)
    await server.start()
    yield server
    await server.stop(5)


@pytest.fixture
async def client(server: ScalerServer) -> AsyncIterator[ExternalScalerClient]:
    async with ExternalScalerClient(f"127.0.0.1:{server.port}", metadata=METADATA, timeout=30) as client:
        yield client
