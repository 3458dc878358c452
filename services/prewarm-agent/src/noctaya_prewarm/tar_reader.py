"""A tar archive as a stream of plain files and directories; anything else in it is refused by name.

The standard library's reader is made to read all that was ever called tar: it follows links within the
archive, skips what it doesn't know, and takes a name of any length into memory. Here a member is a file or a
directory with a harmless name, or the archive is refused. Formats: ustar, GNU long names, pax paths.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Protocol

from noctaya_prewarm.errors import IntegrityFault, Refused
from noctaya_prewarm.safe_path import safe_path, shown

BLOCK: Final = 512
_MAX_NAME_RECORD: Final = 8 * BLOCK
_MAX_PAX: Final = 64 * 1024
_MAX_SIZE: Final = 1 << 50
_FILE, _DIRECTORY = b"0\0" + b"7", b"5"
_REFUSED: Final = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a pipe",
    b"S": "a sparse file",
}
_WHITEOUT: Final = ".wh."


class Source(Protocol):
    """Where an archive comes from."""

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file or directory. The path of the archive's own root directory is empty."""

    path: PurePosixPath
    is_directory: bool
    size: int


class TarReader:
    """Reads one archive, once.

    Args:
        source: the archive, without compression.
        what: what to call it in messages.
    """

    def __init__(self, source: Source, *, what: str) -> None:
        self._source = source
        self._what = what
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        """The members in order. A member's content is read before the next one is asked for, or skipped.

        Raises:
            Refused: a member is no plain file or directory, or its name or header is not acceptable.
            IntegrityFault: the archive ends in the middle.
        """
        name = ""
        size: int | None = None
        while (header := self._next_header()) is not None:
            kind = header[156:157]
            stated = self._size(header)
            if kind == b"L":
                name = _text(self._record(stated, _MAX_NAME_RECORD, "a name")).rstrip("\0")
            elif kind == b"K":
                self._record(stated, _MAX_NAME_RECORD, "the target of a link")
            elif kind in b"xg":
                named, sized = _parse_pax(self._record(stated, _MAX_PAX, "attributes"), self._what)
                if kind == b"g" and (named or sized is not None):
                    raise Refused(f"{self._what} sets the name or size of all its members at once")
                name, size = named or name, sized if sized is not None else size
            else:
                yield self._member(header, kind, name or _name(header), size)
                name, size = "", None
        if name or size is not None:
            raise Refused(f"{self._what} ends with a description of a member that does not come")
        self._drain()

    def read(self, count: int) -> bytes:
        """The next bytes of the current member; none at its end.

        Raises:
            IntegrityFault: the archive ends in the middle.
        """
        wanted = min(count, self._left)
        if not wanted:
            return b""
        piece = self._source.read(wanted)
        if not piece:
            raise IntegrityFault(f"{self._what} ends in the middle of a member")
        self._left -= len(piece)
        return piece

    def _member(self, header: bytes, kind: bytes, name: str, size: int | None) -> Member:
        if kind in _REFUSED:
            raise Refused(
                f"{self._what} contains {_REFUSED[kind]}, {shown(name)}; links and devices are refused"
            )
        is_directory = kind == _DIRECTORY or (kind == b"\0" and name.endswith("/"))
        if not is_directory and kind not in _FILE:
            raise Refused(
                f"{self._what} contains {shown(name)} of the unknown kind {shown(kind.decode('latin-1'))}"
            )
        stated = self._size(header) if size is None else size
        actual = 0 if is_directory else stated
        if actual > _MAX_SIZE:
            raise Refused(f"{self._what} contains {shown(name)} of the impossible size {actual}")
        self._left, self._padding = actual, -actual % BLOCK
        return Member(path=self._path(name, is_directory), is_directory=is_directory, size=actual)

    def _path(self, name: str, is_directory: bool) -> PurePosixPath:
        bare = name.removesuffix("/") if is_directory else name
        if is_directory and bare == ".":
            return PurePosixPath()
        # What `tar -C folder -c .` writes; safe_path sees the rest.
        path = safe_path(bare.removeprefix("./"), what=f"a name in {self._what},")
        if any(part.startswith(_WHITEOUT) for part in path.parts):
            raise Refused(f"{self._what} deletes files of other layers ({shown(name)}); flatten the image")
        return path

    def _next_header(self) -> bytes | None:
        """The next header; None at the end: two empty blocks, or no more bytes."""
        while self.read(BLOCK * 128):
            pass
        self._skip(self._padding)
        self._padding = 0
        header = self._exactly(BLOCK, at_end=True)
        if not header or not any(header):
            return None
        # The checksum counts its own field as spaces.
        if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * 32:
            raise Refused(f"{self._what} is not a tar archive, or a header in it is damaged")
        return header

    def _size(self, header: bytes) -> int:
        size = _number(header[124:136])
        if size is None:
            raise Refused(f"{self._what} states a size that is no number")
        return size

    def _record(self, size: int, limit: int, what: str) -> bytes:
        if size > limit:
            raise Refused(f"{self._what} contains {what} of {size} bytes")
        content = self._exactly(size)
        self._skip(-size % BLOCK)
        return content

    def _skip(self, count: int) -> None:
        self._exactly(count)

    def _exactly(self, count: int, *, at_end: bool = False) -> bytes:
        pieces = bytearray()
        while len(pieces) < count:
            piece = self._source.read(count - len(pieces))
            if not piece:
                if at_end and not pieces:
                    return b""
                raise IntegrityFault(f"{self._what} ends in the middle")
            pieces += piece
        return bytes(pieces)

    def _drain(self) -> None:
        """Read what follows the end: padding, which must be empty, so that nothing hides there."""
        while piece := self._source.read(BLOCK * 128):
            if any(piece):
                raise Refused(f"{self._what} goes on after its end")


def _name(header: bytes) -> str:
    name = header[0:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(raw: bytes) -> str:
    # What is no UTF-8 becomes characters that no name may have.
    return raw.decode("utf-8", "surrogateescape")


def _number(field: bytes) -> int | None:
    """A numeric field: octal digits, or binary when the first bit is set. None when it is neither."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if any(digit not in b"01234567" for digit in text):
        return None
    return int(text or b"0", 8)


def _parse_pax(content: bytes, what: str) -> tuple[str, int | None]:
    """Path and size of a pax record; attributes that don't say which bytes go where are left out."""
    malformed = Refused(f"{what} holds malformed attributes")
    name, size = "", None
    while content:
        length_text = content[:7].partition(b" ")[0]
        if not length_text.isdigit() or not len(length_text) < int(length_text) <= len(content):
            raise malformed
        record, content = content[: int(length_text)], content[int(length_text) :]
        key, equals, value = record[len(length_text) + 1 :].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise malformed
        text = value[:-1]
        if key.startswith(b"GNU.sparse"):
            raise Refused(f"{what} contains a sparse file")
        if key == b"path":
            name = _text(text)
        elif key == b"size":
            if not text.isdigit() or len(text) > 18:
                raise malformed
            size = int(text)
    return name, size
