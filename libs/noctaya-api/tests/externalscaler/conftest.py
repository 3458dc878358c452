"""A scaler on loopback and a client of it over a signal that the test publishes to, and a throw-away CA."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
import trustme
from noctaya_api.demand.signal import DemandSignal, DemandState
from noctaya_api.externalscaler.client import ClientTls, ExternalScalerClient
from noctaya_api.externalscaler.server import ScalerServer
from noctaya_api.externalscaler.tls import TlsFiles

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


class Issuer:
    """One CA for both sides, and the folder its files go to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA()
        self.ca.cert_pem.write_to_path(folder / "ca.crt")

    def put(self, path: Path, content: bytes) -> None:
        """Replace a file in one step, as the kubelet does."""
        fresh = path.with_suffix(path.suffix + ".new")
        fresh.write_bytes(content)
        fresh.replace(path)

    def server_files(self, *, ends: datetime | None = None) -> TlsFiles:
        """A fresh server certificate in tls.crt and tls.key; called again, it replaces them as a whole."""
        issued = self.ca.issue_cert("127.0.0.1", "localhost", not_after=ends)
        self.put(self.folder / "tls.key", issued.private_key_pem.bytes())
        self.put(self.folder / "tls.crt", b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return TlsFiles(self.folder / "tls.crt", self.folder / "tls.key", self.folder / "ca.crt")

    def client_files(self, name: str = "keda") -> ClientTls:
        """A client certificate of this CA."""
        issued = self.ca.issue_cert(f"{name}.example")
        cert, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        self.put(key, issued.private_key_pem.bytes())
        self.put(cert, b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return ClientTls(ca=self.folder / "ca.crt", cert=cert, key=key)


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


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path)
