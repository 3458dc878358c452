from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme
from noctaya_gateway import probe as probe_module
from noctaya_gateway.balancer import Address
from noctaya_gateway.probe import HttpProbe, Outcome

from .servers import answering, status, unused_address


def probe(path: str = "/health", *, timeout: float = 5.0) -> HttpProbe:
    return HttpProbe(path=path, host="model-backend.ns.svc:80", timeout=timeout)


@pytest.mark.parametrize("code", [200, 204, 299])
async def test_any_2xx_is_ready(code: int) -> None:
    async with answering(lambda path: status(code)) as server:
        assert await probe("/v1/ready?deep=1")(server.address) is Outcome.READY
    assert server.paths == ["/v1/ready?deep=1"]
    assert b"\r\nHost: model-backend.ns.svc:80\r\n" in server.heads[0]


@pytest.mark.parametrize("code", [199, 300, 304, 404, 500, 503])
async def test_anything_else_is_not_ready(code: int) -> None:
    async with answering(lambda path: status(code)) as server:
        assert await probe()(server.address) is Outcome.NOT_READY


async def test_a_refused_connection_is_no_broken_one() -> None:
    assert await probe()(unused_address()) is Outcome.REFUSED


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 two hundred\r\n\r\n", b"HTTP/1.1 200", b"\r\n\r\n", b""]
)
async def test_what_is_no_http_answer_is_broken(answer: bytes) -> None:
    async with answering(lambda path: answer) as server:
        assert await probe()(server.address) is Outcome.BROKEN


async def test_an_endless_head_is_broken() -> None:
    async with answering(lambda path: b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000) as server:
        assert await probe()(server.address) is Outcome.BROKEN


async def test_a_server_that_hangs_is_broken_after_the_timeout() -> None:
    async with answering(lambda path: None) as server:
        assert await probe(timeout=0.2)(server.address) is Outcome.BROKEN


async def test_g12_every_probe_has_a_connection_of_its_own() -> None:
    ask = probe()
    async with answering(lambda path: status(503)) as server:
        for _ in range(3):
            await ask(server.address)
        assert server.connections == 3


async def test_a_redirect_is_followed_on_the_same_host_only() -> None:
    def answer(path: str) -> bytes:
        if path == "/health":
            return status(307, "Location: /health/")
        if path == "/health/":
            return status(302, "location: http://model-backend.ns.svc:80/ok?x=1")
        return status(200)

    async with answering(answer) as server:
        assert await probe()(server.address) is Outcome.READY
    assert server.paths == ["/health", "/health/", "/ok?x=1"]

    async with answering(lambda path: status(302, "location: http://elsewhere/ok")) as server:
        assert await probe()(server.address) is Outcome.NOT_READY
    assert server.paths == ["/health"]


async def test_a_redirect_in_a_circle_ends() -> None:
    async with answering(lambda path: status(302, "location: /health")) as server:
        assert await probe()(server.address) is Outcome.NOT_READY
    assert len(server.paths) == probe_module.REDIRECTS + 1


async def test_proxy_settings_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{unused_address()}")
    monkeypatch.setenv("http_proxy", f"http://{unused_address()}")
    async with answering(lambda path: status(200)) as server:
        assert await probe()(server.address) is Outcome.READY


async def test_a_connect_that_is_not_answered_gets_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two connects hang, as when packets are dropped; the third is let through."""
    attempts = 0
    real = asyncio.open_connection

    async def dropped(*args: object, **options: object) -> object:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            await asyncio.Event().wait()
        return await real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "open_connection", dropped)
    async with answering(lambda path: status(200)) as server:
        assert await probe()(server.address) is Outcome.READY
    assert attempts == 3


async def test_an_https_backend_is_verified_against_its_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("model-backend").configure_cert(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(status(200))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    try:
        for name, expected in (("model-backend", Outcome.READY), ("other", Outcome.REFUSED)):
            ask = HttpProbe(path="/", host=name, timeout=5, tls=trust, server_hostname=name)
            assert await ask(address) is expected
    finally:
        server.close()
        await server.wait_closed()
