"""Mutual TLS, and files that change while the server runs."""

import asyncio
import logging
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from noctaya_api.demand.signal import DemandSignal
from noctaya_api.externalscaler import externalscaler_pb2 as pb
from noctaya_api.externalscaler.client import ClientTls, ExternalScalerClient
from noctaya_api.externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from noctaya_api.externalscaler.server import ScalerServer
from noctaya_api.externalscaler.tls import TlsFiles, TlsReloader, TlsUnusable

METADATA = {"targetValue": "5"}


@asynccontextmanager
async def serving(files: TlsFiles, reloads: list[bool] | None = None) -> AsyncIterator[ScalerServer]:
    taken: list[bool] = [] if reloads is None else reloads
    server = ScalerServer(
        DemandSignal(2), listen="127.0.0.1:0", tls=files, on_tls_reload=taken.append, repeat=0.1
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop(5)


async def ask(server: ScalerServer, tls: ClientTls | None) -> float:
    async with ExternalScalerClient(
        f"127.0.0.1:{server.port}", metadata=METADATA, tls=tls, timeout=10
    ) as client:
        return await client.metric()


def presented(server: ScalerServer, client: ClientTls) -> bytes:
    """The certificate the server presents to a new connection."""
    context = ssl.create_default_context(cafile=str(client.ca))
    context.load_cert_chain(client.cert, client.key)
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secured:
        assert secured.version() in {"TLSv1.2", "TLSv1.3"}
        certificate = secured.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


async def certificate(server: ScalerServer, client: ClientTls) -> bytes:
    return await asyncio.to_thread(presented, server, client)


async def test_s2_a_client_with_a_certificate_of_the_ca_is_served(issuer: Any) -> None:
    async with serving(issuer.server_files()) as server:
        assert await ask(server, issuer.client_files()) == 2.0


async def test_s2_plaintext_is_refused_when_tls_is_on(issuer: Any) -> None:
    async with serving(issuer.server_files()) as server:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(server, None)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_without_or_with_a_foreign_certificate_is_refused(issuer: Any, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    foreign = type(issuer)(tmp_path / "foreign").client_files()
    stranger = ClientTls(ca=issuer.folder / "ca.crt", cert=foreign.cert, key=foreign.key)
    async with serving(issuer.server_files()) as server:
        with pytest.raises(grpc.aio.AioRpcError):
            await ask(server, stranger)
        roots = grpc.ssl_channel_credentials((issuer.folder / "ca.crt").read_bytes())
        async with grpc.aio.secure_channel(f"127.0.0.1:{server.port}", roots) as channel:
            stub: Any = ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.IsActive(pb.ScaledObjectRef(), timeout=10)


async def test_less_than_tls_1_2_is_refused(issuer: Any) -> None:
    client = issuer.client_files()

    def old_handshake(port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(client.ca)
        context.load_cert_chain(client.cert, client.key)
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        plain = socket.create_connection(("127.0.0.1", port), timeout=20)
        with plain, context.wrap_socket(plain, server_hostname="localhost"):
            pytest.fail("an old protocol version was accepted")

    async with serving(issuer.server_files()) as server:
        with pytest.raises(OSError):
            await asyncio.to_thread(old_handshake, server.port)


async def test_s2_a_new_certificate_is_taken_up_under_an_open_stream(issuer: Any) -> None:
    client_files = issuer.client_files()
    reloads: list[bool] = []
    async with serving(issuer.server_files(), reloads) as server:
        target = f"127.0.0.1:{server.port}"
        async with (
            ExternalScalerClient(target, metadata=METADATA, tls=client_files) as client,
            aclosing(client.stream_is_active()) as stream,
        ):
            assert await anext(stream) is True
            before = await certificate(server, client_files)
            issuer.server_files()
            after = await certificate(server, client_files)
            assert after != before
            assert await certificate(server, client_files) == after
            assert await anext(stream) is True  # the open stream lives on
        assert await ask(server, client_files) == 2.0
    assert reloads == [True]


async def test_s2_a_changed_client_ca_is_taken_up(issuer: Any, tmp_path: Path) -> None:
    files = issuer.server_files()
    (tmp_path / "next").mkdir()
    successor = type(issuer)(tmp_path / "next")
    newcomer = successor.client_files()
    known = ClientTls(ca=tmp_path / "both.crt", cert=newcomer.cert, key=newcomer.key)
    known.ca.write_bytes((issuer.folder / "ca.crt").read_bytes())
    async with serving(files) as server:
        with pytest.raises(grpc.aio.AioRpcError):
            await ask(server, known)
        bundle = (issuer.folder / "ca.crt").read_bytes() + (successor.folder / "ca.crt").read_bytes()
        issuer.put(files.client_ca, bundle)
        assert await ask(server, known) == 2.0


async def test_s2_a_pair_that_does_not_match_keeps_the_old_one_and_is_logged_once(
    issuer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client_files = issuer.client_files()
    reloads: list[bool] = []
    files = issuer.server_files()
    async with serving(files, reloads) as server:
        before = await certificate(server, client_files)
        old_key = files.key.read_bytes()
        issuer.server_files()
        new_key = files.key.read_bytes()
        files.key.write_bytes(old_key)  # half of a rotation: new certificate, old key
        with caplog.at_level(logging.ERROR):
            for _ in range(3):
                assert await certificate(server, client_files) == before
        errors = [record for record in caplog.records if "stay in force" in record.getMessage()]
        assert len(errors) == 1
        assert b"PRIVATE" not in errors[0].getMessage().encode()
        files.key.write_bytes(new_key)
        assert await certificate(server, client_files) != before
    assert reloads == [False, True]


DAMAGE: dict[str, Callable[[TlsFiles], object]] = {
    "cut": lambda files: files.cert.write_bytes(files.cert.read_bytes()[:200]),
    "gone": lambda files: files.key.unlink(),
    "blank": lambda files: files.cert.write_bytes(b""),
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
async def test_s2_files_that_are_cut_gone_or_blank_keep_the_old_ones(issuer: Any, damage: str) -> None:
    client_files = issuer.client_files()
    files = issuer.server_files()
    async with serving(files) as server:
        before = await certificate(server, client_files)
        DAMAGE[damage](files)
        assert await certificate(server, client_files) == before
        assert await ask(server, client_files) == 2.0


def test_files_that_move_while_they_are_read_are_not_used(
    issuer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = issuer.server_files()
    reloader = TlsReloader(files)
    reloader.credentials()
    issuer.server_files()
    read = Path.read_bytes

    def read_and_rotate(path: Path) -> bytes:
        content = read(path)
        if path == files.cert:
            monkeypatch.undo()
            issuer.server_files()
        return content

    monkeypatch.setattr(Path, "read_bytes", read_and_rotate)
    assert reloader.refreshed() is None
    assert reloader.refreshed() is not None


@pytest.mark.parametrize("damaged", ["cert", "key", "client_ca"])
@pytest.mark.parametrize("content", [None, b"", b"not a pem file"])
async def test_a11_files_that_are_not_usable_stop_the_start(
    issuer: Any, damaged: str, content: bytes | None
) -> None:
    files = issuer.server_files()
    path: Path = getattr(files, damaged)
    if content is None:
        path.unlink()  # noqa: ASYNC240
    else:
        path.write_bytes(content)  # noqa: ASYNC240
    server = ScalerServer(DemandSignal(), listen="127.0.0.1:0", tls=files)
    with pytest.raises(TlsUnusable, match=path.name):
        await server.start()
    await server.stop(1)


async def test_a11_an_encrypted_key_stops_the_start_and_asks_no_terminal(issuer: Any, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    files = issuer.server_files()
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(TlsUnusable):
        TlsReloader(files).credentials()


def test_a11_all_three_paths_or_none() -> None:
    assert TlsFiles.from_paths(cert="", key=None, client_ca="") is None
    whole = TlsFiles.from_paths(cert="c", key="k", client_ca="a")
    assert whole == TlsFiles(Path("c"), Path("k"), Path("a"))
    with pytest.raises(ValueError, match=r"NOCTAYA_SCALER_TLS_KEY_FILE, NOCTAYA_SCALER_TLS_CLIENT_CA_FILE"):
        TlsFiles.from_paths(cert="c", key="", client_ca="")
    with pytest.raises(ValueError, match="NOCTAYA_SCALER_TLS_CERT_FILE"):
        TlsFiles.from_paths(cert="", key="k", client_ca="a")


def swap(link: Path, target: str) -> None:
    fresh = link.with_name("data-next")
    fresh.symlink_to(target)
    fresh.replace(link)


async def test_a_projected_volumes_symlink_swap_is_one_rotation(issuer: Any, tmp_path: Path) -> None:
    client_files = issuer.client_files()
    for generation in ("one", "two"):
        issuer.server_files()
        (tmp_path / generation).mkdir()
        for name in ("tls.crt", "tls.key", "ca.crt"):
            shutil.copy(issuer.folder / name, tmp_path / generation / name)
    link = tmp_path / "data"
    link.symlink_to("one")
    async with serving(TlsFiles(link / "tls.crt", link / "tls.key", link / "ca.crt")) as server:
        before = await certificate(server, client_files)
        swap(link, "two")
        assert await certificate(server, client_files) != before


async def test_the_end_of_the_certificate_is_that_of_the_file_without_a_handshake(issuer: Any) -> None:
    first, second = datetime(2030, 1, 2, tzinfo=UTC), datetime(2031, 1, 2, tzinfo=UTC)
    async with serving(issuer.server_files(ends=first)) as server:
        assert server.certificate_expires() == first
        issuer.server_files(ends=second)
        assert server.certificate_expires() == second
        issuer.put(issuer.folder / "tls.crt", b"half written")
        assert server.certificate_expires() is None


async def test_without_tls_no_certificate_ends(server: ScalerServer) -> None:
    assert server.certificate_expires() is None
