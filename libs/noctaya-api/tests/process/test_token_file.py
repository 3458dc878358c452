import os
from pathlib import Path

import pytest
from noctaya_api.process.token_file import TokenFile, TokenUnavailable, parse_tokens

OLD = b"o" * 32
NEW = b"n" * 40


def test_a12_tokens_are_trimmed_and_blank_lines_ignored() -> None:
    assert parse_tokens(b"\n  first\t\r\n\n second \n") == (b"first", b"second")


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"x" * 31, NEW + b"\n" + b"x" * 31])
def test_a12_blank_and_short_tokens_make_the_file_unusable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(TokenUnavailable):
        TokenFile(path, min_length=32).tokens()


def test_the_error_names_the_file_and_no_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"secret-but-short")
    with pytest.raises(TokenUnavailable, match=r"token file .*/token") as caught:
        TokenFile(path, min_length=32).tokens()
    assert "secret-but-short" not in str(caught.value)


def test_a_missing_file_is_unavailable_until_it_appears(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens = TokenFile(path)
    with pytest.raises(TokenUnavailable, match="No such file"):
        tokens.matches(NEW)
    path.write_bytes(NEW)
    assert tokens.matches(NEW)


def test_every_token_of_the_file_matches_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(OLD + b"\n" + NEW + b"\n")
    tokens = TokenFile(path)
    assert tokens.matches(OLD)
    assert tokens.matches(NEW)
    assert not tokens.matches(OLD + NEW)
    assert not tokens.matches(b"")
    assert not tokens.matches(b" " + NEW)


def test_a_replaced_file_is_read_again_even_with_equal_size(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(OLD)
    tokens = TokenFile(path)
    assert tokens.tokens() == (OLD,)
    fresh = tmp_path / "fresh"
    fresh.write_bytes(b"p" * 32)
    os.utime(fresh, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    fresh.replace(path)
    assert tokens.tokens() == (b"p" * 32,)


def test_a_projected_volumes_symlink_swap_is_seen(tmp_path: Path) -> None:
    for generation, token in (("one", OLD), ("two", NEW)):
        (tmp_path / generation).mkdir()
        (tmp_path / generation / "token").write_bytes(token)
    link = tmp_path / "data"
    link.symlink_to("one")
    tokens = TokenFile(link / "token")
    assert tokens.matches(OLD)
    swapped = tmp_path / "data-next"
    swapped.symlink_to("two")
    swapped.replace(link)
    assert tokens.matches(NEW)
    assert not tokens.matches(OLD)


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_bytes(OLD)
    tokens = TokenFile(path)
    first = tokens.tokens()
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("read again"))
    assert tokens.tokens() is first


def test_a_file_that_went_bad_is_forgotten_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(OLD)
    tokens = TokenFile(path)
    assert tokens.matches(OLD)
    path.write_bytes(b"\n")
    with pytest.raises(TokenUnavailable):
        tokens.matches(OLD)
    path.unlink()
    with pytest.raises(TokenUnavailable):
        tokens.tokens()
