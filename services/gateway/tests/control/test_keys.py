"""The key file's lines, and what a key file that changes does (G10, decision 0021)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.process.token_file import TokenFile
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.errors import AuthenticationUnavailable, Unauthorized
from noctaya_gateway.keys import ClientKey, KeyLimits, MalformedKeys, parse_keys


def bearer(key: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", b"Bearer " + key)]


def test_g10_a_line_that_is_a_key_alone_is_what_it_always_was() -> None:
    keys = parse_keys((b"sk-one", b"sk-two=="))
    assert [key.secret for key in keys] == [b"sk-one", b"sk-two=="]
    assert [key.name for key in keys] == ["key-1", "key-2"]
    assert {key.limits for key in keys} == {KeyLimits()}


def test_a_key_has_its_own_limits_or_those_of_the_service() -> None:
    default = KeyLimits(requests_per_minute=60, concurrent=2)
    keys = parse_keys((b"a", b"b name=batch rpm=5", b"c  concurrent=0\tname=web"), default=default)
    assert [(key.name, key.limits) for key in keys] == [
        ("key-1", default),
        ("batch", KeyLimits(5, 2)),
        ("web", KeyLimits(60, 0)),
    ]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((b"sk-secret rpm 60",), "key 1: what follows the key must be name=, rpm= or concurrent="),
        ((b"ok", b"sk-secret limit=60"), "key 2: what follows"),
        ((b"sk-secret rpm=60 rpm=60",), "rpm= is there twice"),
        ((b"sk-secret rpm=-1",), "rpm= is a whole number from 0"),
        ((b"sk-secret rpm=",), "rpm= is a whole number"),
        ((b"sk-secret concurrent=1.5",), "concurrent= is a whole number"),
        ((b"sk-secret rpm=9999999",), "to 1000000"),
        ((b"sk-secret rpm=" + "\u0663".encode(),), "rpm= is a whole number"),
        ((b'sk-secret name="x"',), "a name is 1 to 63"),
        ((b"sk-secret name=" + b"x" * 64,), "a name is 1 to 63"),
        ((b"sk-secret name=a rpm=1", b"sk-other name=a"), "the keys named 'a' have different limits"),
    ],
)
def test_a_line_that_can_not_be_understood_is_named_and_shows_no_key(
    lines: tuple[bytes, ...], says: str
) -> None:
    with pytest.raises(MalformedKeys) as malformed:
        parse_keys(lines)
    assert says in str(malformed.value)
    assert "secret" not in str(malformed.value)


@given(st.lists(st.binary(min_size=1).map(bytes.strip).filter(bool), max_size=5).map(tuple))
def test_any_bytes_are_keys_or_a_named_fault(lines: tuple[bytes, ...]) -> None:
    try:
        keys = parse_keys(lines)
    except MalformedKeys:
        return
    assert [key.secret for key in keys] == [line.split()[0] for line in lines]


def test_a_key_never_shows_itself() -> None:
    assert "sk-secret" not in repr(ClientKey(b"sk-secret", "batch", KeyLimits()))


def test_g10_a_file_changed_for_one_that_can_not_be_understood_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys"
    path.write_text("sk-one name=web rpm=5\n")
    names: list[list[str]] = []
    auth = Authenticator(TokenFile(path), on_names=lambda given: names.append(list(given)))
    assert auth.check(bearer(b"sk-one")) == ClientKey(b"sk-one", "web", KeyLimits(5, 0))

    path.write_text("sk-one name=web rpm=5\nsk-two name=batch rpm=many\n")
    for _ in range(3):
        assert auth.check(bearer(b"sk-one")) == ClientKey(b"sk-one", "web", KeyLimits(5, 0))
        with pytest.raises(Unauthorized):
            auth.check(bearer(b"sk-two"))
    assert auth.malformed
    assert len(caplog.records) == 1
    assert "key 2: rpm=" in caplog.text
    assert "sk-two" not in caplog.text

    path.write_text("sk-two name=batch rpm=90000\n")
    assert auth.check(bearer(b"sk-two")) == ClientKey(b"sk-two", "batch", KeyLimits(90000, 0))
    assert not auth.malformed
    with pytest.raises(Unauthorized):
        auth.check(bearer(b"sk-one"))
    assert names == [["web"], ["batch"]]


def test_g10_keys_are_read_at_the_start_so_that_they_are_there_when_the_file_is_spoilt(
    tmp_path: Path,
) -> None:
    path = tmp_path / "keys"
    path.write_text("sk-one\n")
    auth = Authenticator(TokenFile(path))
    auth.prime()
    path.write_text("sk-one rpm=many\n")
    assert auth.check(bearer(b"sk-one")) is not None
    Authenticator(None).prime()


def test_without_any_keys_before_nobody_comes_in(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("sk-one rpm=many")
    auth = Authenticator(TokenFile(path))
    for _ in range(2):
        with pytest.raises(AuthenticationUnavailable):
            auth.check(bearer(b"sk-one"))
    path.write_text("sk-one rpm=1")
    assert auth.check(bearer(b"sk-one")) is not None
