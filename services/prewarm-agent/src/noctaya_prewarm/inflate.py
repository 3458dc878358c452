"""Decompression that can't be made to flood memory or disk.

A gibibyte of zeros is a megabyte of gzip. The output is taken in bounded pieces, counted, and refused as soon
as there is more of it than honest weights would ever give.
"""

import hashlib
import zlib
from typing import Final

from noctaya_prewarm.disk import human
from noctaya_prewarm.errors import IntegrityFault, Refused
from noctaya_prewarm.tar_reader import Source

FREE_OUTPUT: Final = 64 << 20
"""Bytes that any artifact may unpack to: small texts compress well, and do no harm."""
MAX_RATIO: Final = 20
"""Bytes out for each byte in, beyond FREE_OUTPUT. Weights give 1 to 2, vocabularies 3 to 10."""
_PIECE: Final = 256 * 1024
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW: Final = 31


class Budget:
    """How much the archives of one artifact may unpack to, all together.

    Args:
        stored: bytes of the archives as they are stored.
    """

    def __init__(self, *, stored: int) -> None:
        self.limit = FREE_OUTPUT + MAX_RATIO * stored
        self._spent = 0

    def spend(self, count: int, what: str) -> None:
        """Count some output.

        Raises:
            Refused: it is too much.
        """
        self._spent += count
        if self._spent > self.limit:
            raise Refused(
                f"{what} unpacks to so much that the artifact has more than {human(self.limit)}, which its "
                "size does not justify"
            )


class Inflated:
    """The content of an archive, whether it is compressed with gzip or not at all, as its first bytes tell.

    Args:
        source: the bytes as they are stored.
        budget: what may come out.
        what: what to call them in messages.
    """

    def __init__(self, source: Source, *, budget: Budget, what: str) -> None:
        self._source = source
        self._what = what
        self._budget = budget
        self._head = self._source.read(len(_ZSTD))
        self._hash = hashlib.sha256()
        self._gzip = zlib.decompressobj(_GZIP_WINDOW) if self._head.startswith(_GZIP) else None
        self._pending = b""
        if self._head.startswith(_ZSTD):
            raise Refused(f"{what} is compressed with zstd, which is not supported; pack it with gzip")

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes that were read so far, in hexadecimal."""
        return self._hash.hexdigest()

    def read(self, count: int) -> bytes:
        """At most `count` bytes, none at the end.

        Raises:
            Refused: the content is no gzip, or grows beyond all measure.
            IntegrityFault: the content ends in the middle.
        """
        piece = self._plain(count) if self._gzip is None else self._inflate(self._gzip, count)
        self._budget.spend(len(piece), self._what)
        self._hash.update(piece)
        return piece

    def _plain(self, count: int) -> bytes:
        if self._head:
            piece, self._head = self._head[:count], self._head[count:]
            return piece
        return self._source.read(count)

    def _inflate(self, gzip: "zlib._Decompress", count: int) -> bytes:
        while True:
            if gzip.eof:
                following = self._following(gzip)
                if not following:
                    return b""
                self._gzip = gzip = zlib.decompressobj(_GZIP_WINDOW)
                self._pending = following
            data = self._pending or self._plain(_PIECE)
            try:
                piece = gzip.decompress(data, count)
            except zlib.error:
                raise Refused(f"{self._what} is not readable as gzip") from None
            self._pending = gzip.unconsumed_tail
            if piece:
                return piece
            if not data and not gzip.eof:
                raise IntegrityFault(f"{self._what} ends in the middle of its compression")

    def _following(self, gzip: "zlib._Decompress") -> bytes:
        """The beginning of another compressed piece, which may follow; padding with NUL bytes is not one."""
        following = gzip.unused_data.lstrip(b"\0")
        while not following:
            piece = self._plain(_PIECE)
            if not piece:
                return b""
            following = piece.lstrip(b"\0")
        return following
