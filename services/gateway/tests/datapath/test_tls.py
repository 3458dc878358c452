"""A backend behind https."""

from __future__ import annotations

import ssl

import pytest
import trustme

from .conftest import MakeBackend, MakeStage
from .stage import ok, post, replying


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_https_backend_is_verified_by_its_name(
    stage: MakeStage, backend: MakeBackend, authority: trustme.CA
) -> None:
    server = await backend(replying(ok()), ssl=server_context(authority, "model.example"))
    gateway = await stage(tls=client_context(authority), server_hostname="model.example")
    gateway.warm(server)
    for _ in range(2):
        assert (await gateway.ask(post(b"x" * 100_000))).endswith(b"\r\n\r\nok")
    assert server.accepted == 1


async def test_https_backend_with_another_name_is_refused(
    stage: MakeStage, backend: MakeBackend, authority: trustme.CA
) -> None:
    server = await backend(replying(ok()), ssl=server_context(authority, "other.example"))
    gateway = await stage(tls=client_context(authority), server_hostname="model.example", reject_cold=True)
    gateway.warm(server)
    reply = await gateway.ask(post())
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert b"SSLCertVerificationError" in reply
