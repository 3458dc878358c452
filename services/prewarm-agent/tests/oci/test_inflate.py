"""Decompression: complete, in bounded pieces, and never out of proportion (M4)."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.errors import IntegrityFault, PrewarmError, Refused
from noctaya_prewarm.inflate import MAX_RATIO, Budget, Inflated
from oci_artifacts import packed, sha256


class Trickle:
    """Gives at most `step` bytes at once."""

    def __init__(self, content: bytes, step: int) -> None:
        self._file = io.BytesIO(content)
        self._step = step

    def read(self, count: int) -> bytes:
        return self._file.read(min(count, self._step))


def inflated(content: bytes, *, step: int = 1 << 20, budget: Budget | None = None) -> Inflated:
    return Inflated(Trickle(content, step), budget=budget or Budget(stored=len(content)), what="layer 1")


def read_all(content: Inflated, count: int = 1000) -> bytes:
    pieces = []
    while piece := content.read(count):
        assert len(piece) <= count
        pieces.append(piece)
    assert content.read(count) == b""
    return b"".join(pieces)


@given(st.binary(max_size=5000), st.integers(1, 4000), st.integers(1, 5000), st.integers(1, 3))
def test_gzip_in_pieces_of_any_size_and_in_several_members(
    content: bytes, step: int, count: int, members: int
) -> None:
    found = inflated(packed(content) * members, step=step)
    # The first bytes tell the compression and are read at once.
    if step < 4:
        found = inflated(packed(content) * members)
    assert read_all(found, count) == content * members
    assert found.digest == sha256(content * members)


@given(st.binary(max_size=3000), st.integers(1, 4000))
def test_what_is_not_compressed_stays_as_it_is(content: bytes, count: int) -> None:
    plain = b"name.txt" + content
    assert read_all(inflated(plain), count) == plain


def test_padding_after_the_end_is_no_content() -> None:
    assert read_all(inflated(packed(b"abc") + bytes(700_000))) == b"abc"
    assert read_all(inflated(packed(b"abc") + bytes(700_000) + packed(b"def"))) == b"abcdef"


@pytest.mark.parametrize("end", [-1, -8, 12, 15])
def test_a_cut_is_an_integrity_fault(end: int) -> None:
    with pytest.raises(IntegrityFault, match="ends in the middle of its compression"):
        read_all(inflated(packed(b"some content that is long enough" * 9)[:end]))


@pytest.mark.parametrize(
    "content", [b"\x1f\x8bnonsense", packed(b"abc") + b"trailing", packed(b"abc")[:-6] + b"x" * 6]
)
def test_what_is_no_gzip_is_refused(content: bytes) -> None:
    with pytest.raises(Refused, match="not readable as gzip"):
        read_all(inflated(content))


def test_zstd_is_refused_with_the_remedy() -> None:
    with pytest.raises(Refused, match=r"zstd.*pack it with gzip"):
        inflated(b"\x28\xb5\x2f\xfd....")


@pytest.fixture
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that may come out of anything; the real bound takes seconds to reach."""
    monkeypatch.setattr("noctaya_prewarm.inflate.FREE_OUTPUT", 4 << 20)
    return 4 << 20


def test_m4_a_bomb_is_refused_long_before_it_is_unpacked(little_is_free: int) -> None:
    bomb = gzip.compress(bytes(little_is_free * 4))
    content = inflated(bomb)
    given_out = 0
    with pytest.raises(Refused, match="layer 1 unpacks to so much"):
        while piece := content.read(1 << 16):
            given_out += len(piece)
    assert given_out <= little_is_free + MAX_RATIO * len(bomb)


def test_m4_many_small_bombs_are_one(little_is_free: int) -> None:
    bomb = gzip.compress(bytes(little_is_free // 2))
    budget = Budget(stored=3 * len(bomb))
    read_all(inflated(bomb, budget=budget), 1 << 16)
    read_all(inflated(bomb, budget=budget), 1 << 16)
    with pytest.raises(Refused, match="so much"):
        read_all(inflated(bomb, budget=budget), 1 << 16)


def test_the_bounds_are_what_the_page_says() -> None:
    assert Budget(stored=1000).limit == (64 << 20) + 20 * 1000


def test_content_within_the_ratio_is_no_bomb() -> None:
    content = b"token %d\n" * 1000 + bytes(5 << 20)
    assert read_all(inflated(packed(content)), 1 << 16) == content


@given(st.binary(max_size=200), st.integers(0, 30), st.binary(min_size=1, max_size=3))
def test_damaged_gzip_is_one_named_error_or_right(content: bytes, at: int, noise: bytes) -> None:
    blob = bytearray(packed(content))
    blob[at : at + len(noise)] = noise
    try:
        read_all(inflated(bytes(blob)))
    except PrewarmError as error:
        assert str(error).isprintable()
