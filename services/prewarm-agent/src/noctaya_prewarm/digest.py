"""Digests as sources announce them, and hashers that compute the same.

Hugging Face gives SHA-256 for large files and git's blob SHA-1 for small ones, ModelScope SHA-256, S3 an MD5,
an MD5 over the MD5s of parts, or a checksum. Where a source announces nothing a SHA-256 is computed all the
same, so that what was written can be verified later.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    """Kinds of digests, by their names in a marker."""

    SHA256 = "sha256"
    GIT_SHA1 = "gitSha1"
    MD5 = "md5"
    CRC32 = "crc32"
    S3_ETAG = "s3Etag"


@dataclass(frozen=True, kw_only=True)
class Digest:
    """A digest: lower-case hexadecimal, for S3_ETAG followed by `-` and the number of parts."""

    kind: Kind
    value: str
    part_size: int = 0
    """Bytes of every part but the last; only for S3_ETAG."""

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.value}"


class Hasher(Protocol):
    """Takes a file's bytes in order and tells their digest at the end."""

    def update(self, data: bytes | memoryview, /) -> None:
        """The next bytes."""

    def digest(self) -> Digest:
        """The digest of all bytes so far."""


def new_hasher(expected: Digest | None, *, size: int) -> Hasher:
    """A hasher that computes what `expected` says, or SHA-256 when nothing is expected.

    `size` is the size of the whole file in bytes, which git hashes first.
    """
    kind = Kind.SHA256 if expected is None else expected.kind
    if kind is Kind.S3_ETAG:
        assert expected is not None
        return _PartedMd5(expected.part_size)
    if kind is Kind.CRC32:
        return _Crc32()
    if kind is Kind.GIT_SHA1:
        blob = hashlib.sha1(usedforsecurity=False)
        blob.update(b"blob %d\0" % size)
        return _Plain(kind, blob)
    if kind is Kind.MD5:
        return _Plain(kind, hashlib.md5(usedforsecurity=False))
    return _Plain(kind, hashlib.sha256())


def hex_of_base64(text: str) -> str:
    """The hexadecimal form of a base64 value. Raises ValueError when it is none."""
    return base64.b64decode(text, validate=True).hex()


class _Plain:
    def __init__(self, kind: Kind, state: "hashlib._Hash") -> None:
        self._kind = kind
        self._state = state
        self.update: Callable[[bytes | memoryview], None] = state.update

    def digest(self) -> Digest:
        return Digest(kind=self._kind, value=self._state.hexdigest())


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes | memoryview, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> Digest:
        return Digest(kind=Kind.CRC32, value=f"{self._value:08x}")


class _PartedMd5:
    """The ETag of a multipart upload whose parts, but for the last, have one size."""

    def __init__(self, part_size: int) -> None:
        if part_size < 1:
            raise ValueError("an ETag of parts needs the size of a part")
        self._part_size = part_size
        self._done: list[bytes] = []
        self._state = hashlib.md5(usedforsecurity=False)
        self._room = part_size

    def update(self, data: bytes | memoryview, /) -> None:
        view = memoryview(data)
        while view:
            if self._room == 0:
                self._close_part()
            step = view[: self._room]
            self._state.update(step)
            self._room -= len(step)
            view = view[len(step) :]

    def digest(self) -> Digest:
        parts = [*self._done, self._state.digest()]
        whole = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()
        return Digest(kind=Kind.S3_ETAG, value=f"{whole}-{len(parts)}", part_size=self._part_size)

    def _close_part(self) -> None:
        self._done.append(self._state.digest())
        self._state = hashlib.md5(usedforsecurity=False)
        self._room = self._part_size
