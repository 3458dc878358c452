from __future__ import annotations

import os
from pathlib import Path

import pytest
from noctaya_api.process.token_file import TokenFile
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.errors import AuthenticationUnavailable, Unauthorized

Headers = list[tuple[bytes, bytes]]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "api-key"
    path.write_text("first-key\n\n  second-key  \n")
    return path


@pytest.fixture
def auth(key_file: Path) -> Authenticator:
    return Authenticator(TokenFile(key_file))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"Authorization", b"Bearer first-key")],
        [(b"authorization", b"bearer second-key")],
        [(b"AUTHORIZATION", b"BEARER first-key")],
        [(b"x-api-key", b"first-key")],
        [(b"X-Api-Key", b"second-key")],
        [(b"api-key", b"first-key")],
        [(b"authorization", b"Basic abc"), (b"x-api-key", b"first-key")],
        [(b"host", b"x"), (b"accept", b"*/*"), (b"authorization", b"Bearer first-key")],
    ],
)
def test_g10_a_known_key_lets_in_under_every_header_and_case(auth: Authenticator, headers: Headers) -> None:
    auth.check(headers)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer wrong")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer  first-key")],
        [(b"authorization", b"Bearer first-key ")],
        [(b"authorization", b"first-key")],
        [(b"authorization", b"Basic first-key")],
        [(b"authorization", b"Bearer first-key\nsecond-key")],
        [(b"x-api-key", b"Bearer first-key")],
        [(b"x-api-kex", b"first-key")],
        [(b"authorization", b"Bearer wrong"), (b"authorization", b"Bearer first-key")],
        [(b"x-api-key", b"wrong"), (b"X-API-Key", b"first-key")],
    ],
)
def test_anything_else_is_401_with_a_challenge_and_only_the_first_header_counts(
    auth: Authenticator, headers: Headers
) -> None:
    with pytest.raises(Unauthorized) as refusal:
        auth.check(headers)
    assert refusal.value.status == 401
    assert refusal.value.code == "invalid_api_key"
    assert refusal.value.reason == "unauthorized"
    assert refusal.value.headers == ((b"www-authenticate", b'Bearer realm="noctaya"'),)


def test_g10_rotation_by_file_needs_no_restart(auth: Authenticator, key_file: Path) -> None:
    auth.check([(b"authorization", b"Bearer first-key")])
    replacement = key_file.with_suffix(".new")
    replacement.write_text("third-key")
    replacement.replace(key_file)

    auth.check([(b"authorization", b"Bearer third-key")])
    with pytest.raises(Unauthorized):
        auth.check([(b"authorization", b"Bearer first-key")])


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Bearer first-key")]])
def test_g13_of_contracts_a_missing_file_is_503_without_a_challenge(
    auth: Authenticator, key_file: Path, headers: Headers
) -> None:
    auth.check([(b"authorization", b"Bearer first-key")])
    key_file.unlink()

    with pytest.raises(AuthenticationUnavailable) as refusal:
        auth.check(headers)

    assert refusal.value.status == 503
    assert refusal.value.reason == "authentication_unavailable"
    assert refusal.value.headers == ()


def test_a_blank_file_lets_nobody_in(auth: Authenticator, key_file: Path) -> None:
    key_file.write_text(" \n\t\n")
    with pytest.raises(AuthenticationUnavailable):
        auth.check([(b"authorization", b"Bearer ")])


def test_the_file_is_read_again_only_when_it_changed(
    auth: Authenticator, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read_bytes = Path.read_bytes

    def counted(self: Path) -> bytes:
        nonlocal reads
        reads += 1
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", counted)
    for _ in range(10):
        auth.check([(b"authorization", b"Bearer first-key")])
    assert reads == 1
    os.utime(key_file, ns=(1, 1))
    auth.check([(b"authorization", b"Bearer first-key")])
    assert reads == 2


def test_credential_headers_are_named_only_when_authentication_is_on(auth: Authenticator) -> None:
    assert auth.enabled
    assert auth.credential_headers == {b"authorization", b"x-api-key", b"api-key"}
    off = Authenticator(None)
    assert not off.enabled
    assert off.credential_headers == frozenset()
    off.check([])
