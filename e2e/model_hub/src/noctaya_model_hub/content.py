"""What a file on the hub holds: bytes in memory, a file on disk, or a pattern of any size.

Every kind knows its size and gives any range of itself in pieces, so that a gigabyte costs the hub no memory.
Hashes are computed once, when first asked for.
"""

import functools
import hashlib
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

PIECE = 1 << 20
"""Bytes that are handed to the socket at once."""


class Content(Protocol):
    """The bytes of one file."""

    def __hash__(self) -> int: ...

    @property
    def size(self) -> int:
        """Length in bytes."""

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in pieces of at most PIECE bytes."""


class Inline:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        view = memoryview(self._data)
        for position in range(start, end, PIECE):
            yield bytes(view[position : min(position + PIECE, end)])


class OnDisk:
    """A file of the machine the hub runs on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = path.stat().st_size

    @property
    def size(self) -> int:
        return self._size

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(start)
            while start < end:
                piece = file.read(min(PIECE, end - start))
                if not piece:
                    raise OSError(f"{self.path} has become shorter while it was served")
                start += len(piece)
                yield piece


class Pattern:
    """Bytes that look random, are the same for the same seed, and differ from one mebibyte to the next."""

    def __init__(self, *, size: int, seed: int = 0) -> None:
        self._size = size
        self._seed = seed

    @property
    def size(self) -> int:
        return self._size

    @functools.cached_property
    def _block(self) -> bytes:
        return random.Random(self._seed).randbytes(PIECE)

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            number, offset = divmod(start, PIECE)
            block = number.to_bytes(8, "big") + self._block[8:]
            piece = block[offset : min(PIECE, offset + end - start)]
            start += len(piece)
            yield piece


@functools.cache
def sha256(content: Content) -> str:
    """The SHA-256 of a content, in hexadecimal."""
    digest = hashlib.sha256()
    for piece in content.pieces(0, content.size):
        digest.update(piece)
    return digest.hexdigest()


@functools.cache
def git_sha1(content: Content) -> str:
    """The name git gives to a blob with this content, which is what hubs call `oid` or `blobId`."""
    digest = hashlib.sha1(b"blob %d\0" % content.size)
    for piece in content.pieces(0, content.size):
        digest.update(piece)
    return digest.hexdigest()


@functools.cache
def md5(content: Content) -> str:
    """The MD5 of a content, which S3 gives as ETag of an object that was put in one part."""
    digest = hashlib.md5()
    for piece in content.pieces(0, content.size):
        digest.update(piece)
    return digest.hexdigest()


def as_contents(files: Mapping[str, Content | bytes | str]) -> dict[str, Content]:
    """Plain bytes and text as contents; contents as they are."""
    return {path: _as_content(value) for path, value in files.items()}


def _as_content(value: Content | bytes | str) -> Content:
    if isinstance(value, str):
        return Inline(value.encode())
    return Inline(value) if isinstance(value, bytes) else value
