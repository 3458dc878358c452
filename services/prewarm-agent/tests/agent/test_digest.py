import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.digest import Digest, Kind, hex_of_base64, new_hasher

DATA = b"the quick brown fox" * 50


def reference(kind: Kind, data: bytes, part: int) -> str:
    if kind is Kind.GIT_SHA1:
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    if kind is Kind.CRC32:
        return f"{zlib.crc32(data):08x}"
    if kind is Kind.S3_ETAG:
        parts = [data[at : at + part] for at in range(0, len(data), part)] or [b""]
        sums = [hashlib.md5(one, usedforsecurity=False).digest() for one in parts]
        return f"{hashlib.md5(b''.join(sums), usedforsecurity=False).hexdigest()}-{len(parts)}"
    return hashlib.new(kind.value, data, usedforsecurity=False).hexdigest()


@given(
    kind=st.sampled_from(list(Kind)),
    data=st.binary(max_size=300),
    cuts=st.lists(st.integers(1, 50), max_size=10),
    part=st.integers(1, 120),
)
def test_a_hasher_computes_the_announced_kind_however_the_bytes_come(
    kind: Kind, data: bytes, cuts: list[int], part: int
) -> None:
    expected = Digest(kind=kind, value="", part_size=part if kind is Kind.S3_ETAG else 0)
    hasher = new_hasher(expected, size=len(data))
    position = 0
    for cut in cuts:
        hasher.update(memoryview(data)[position : position + cut])
        position += cut
    hasher.update(data[position:])
    assert hasher.digest().value == reference(kind, data, part)
    assert hasher.digest().kind is kind


def test_git_names_an_empty_blob_as_everybody_knows_it() -> None:
    hasher = new_hasher(Digest(kind=Kind.GIT_SHA1, value=""), size=0)
    assert hasher.digest().value == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_without_an_announced_digest_a_sha256_is_computed() -> None:
    hasher = new_hasher(None, size=len(DATA))
    hasher.update(DATA)
    assert str(hasher.digest()) == f"sha256:{hashlib.sha256(DATA).hexdigest()}"


def test_base64_checksums_become_hexadecimal() -> None:
    assert hex_of_base64("AAEC/w==") == "000102ff"
    with pytest.raises(ValueError, match=r".+"):
        hex_of_base64("not base64!")
