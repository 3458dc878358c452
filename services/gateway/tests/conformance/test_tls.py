"""TLS: a backend behind https, and the ExternalScaler behind mutual TLS."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
import trustme

from .conftest import ONE_ENGINE, Backends, Start
from .harness.client import STREAM_BODY
from .harness.keda import Keda
from .harness.process import eventually


def server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_https_backend_is_verified_probed_and_proxied(
    start: Start, backends: Backends, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    backend = backends()
    await backend.start(tls=server_context(authority, "localhost"))
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL=f"https://localhost:{backend.port}",
        SSL_CERT_FILE=str(tmp_path / "ca.pem"),
    )
    await eventually(rig.gateway.backend_ready)
    for _ in range(3):
        assert (await rig.gateway.ask()).status == 200
    assert (await rig.gateway.ask(body=STREAM_BODY)).status == 200
    assert len({id(call.wire) for call in backend.calls}) == 1


@pytest.mark.parametrize("fault", ["unknown authority", "other name"])
async def test_https_backend_that_cannot_be_verified_is_never_ready(
    start: Start, backends: Backends, tmp_path: Path, fault: str
) -> None:
    known, unknown = trustme.CA(), trustme.CA()
    known.cert_pem.write_to_path(tmp_path / "ca.pem")
    backend = backends()
    issuer, name = (unknown, "localhost") if fault == "unknown authority" else (known, "other.example")
    await backend.start(tls=server_context(issuer, name))
    rig = await start(
        healthy=False,
        NOCTAYA_BACKEND_URL=f"https://localhost:{backend.port}",
        NOCTAYA_ACTIVATION_TIMEOUT="1s",
        SSL_CERT_FILE=str(tmp_path / "ca.pem"),
    )
    assert (await rig.gateway.ask()).status == 503
    assert not await rig.gateway.backend_ready()
    assert backend.calls == []
    # asyncio's streams may report a failed handshake a second time when they are collected.
    rig.gateway.lines[:] = [line for line in rig.gateway.lines if "CERTIFICATE_VERIFY_FAILED" not in line]


@ONE_ENGINE
async def test_scaler_behind_mutual_tls_refuses_plaintext_and_strangers(start: Start, tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    ends = datetime(2035, 6, 1, tzinfo=UTC)
    server = authority.issue_cert("localhost", not_after=ends)
    client = authority.issue_cert("keda.test")
    server.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    server.private_key_pem.write_to_path(tmp_path / "tls.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    rig = await start(
        NOCTAYA_SCALER_TLS_CERT_FILE=str(tmp_path / "tls.crt"),
        NOCTAYA_SCALER_TLS_KEY_FILE=str(tmp_path / "tls.key"),
        NOCTAYA_SCALER_TLS_CLIENT_CA_FILE=str(tmp_path / "ca.crt"),
    )

    def credentials(identity: trustme.LeafCert) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(
            root_certificates=authority.cert_pem.bytes(),
            private_key=identity.private_key_pem.bytes(),
            certificate_chain=identity.cert_chain_pems[0].bytes(),
        )

    async with Keda(rig.gateway.scaler_port, credentials=credentials(client)) as keda:
        assert await keda.demand() == 0
        keda.watch()
        await keda.said(False)
    metrics = await rig.gateway.metrics()
    expiry = "noctaya_gateway_scaler_certificate_expiry_timestamp_seconds"
    assert [value for (name, _), value in metrics.items() if name == expiry] == [ends.timestamp()]
    for bad in (None, credentials(stranger.issue_cert("keda.test"))):
        async with Keda(rig.gateway.scaler_port, credentials=bad) as refused:
            refused.watch()
            assert await refused.stream_ended() is grpc.StatusCode.UNAVAILABLE
