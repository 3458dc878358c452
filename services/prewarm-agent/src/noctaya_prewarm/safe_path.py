"""Paths as sources name them (titles, names in archives, entries of a listing), refused unless harmless.

A name is never repaired. One that would have to be is either an attack or a mistake, and in both cases
whoever published it should hear of it; what is written must be what was announced.
"""

import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from noctaya_prewarm.errors import Refused

MAX_NAME: Final = 255
"""Bytes of one part of a path, as UTF-8: what Linux file systems allow."""
MAX_PATH: Final = 1024
"""Bytes of a whole path, which leaves room for the directory it goes into."""
MAX_DEPTH: Final = 32
RESERVED: Final = ".noctaya-"
"""Names that begin so are ours: a source that could write a marker could vouch for itself."""

_SHOWN = 80
_BAD_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Overrides of the writing direction: the name that people read is not the name that is written.
_BAD_CHARACTERS = frozenset("\\\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe_path(text: str, *, what: str = "path") -> PurePosixPath:
    """The path that `text` names below some directory.

    Args:
        text: as the source wrote it.
        what: what to call it in a message, for example `title of layer 3`.

    Raises:
        Refused: it is empty, absolute, has `.`, `..` or empty parts, control characters, backslashes or names
            reserved for markers, or is longer than a file system takes.
    """
    reason = _fault_of(text)
    if reason:
        raise Refused(f"{what} {shown(text)} {reason}")
    return PurePosixPath(text)


class PathSet:
    """Paths that are to exist side by side, collected one after another."""

    def __init__(self) -> None:
        self._files: set[PurePosixPath] = set()
        self._folders: set[PurePosixPath] = {PurePosixPath()}

    def add_file(self, path: PurePosixPath) -> None:
        """There is a file here. Raises Refused when there was one already, or a directory."""
        if path in self._files:
            raise Refused(f"the file {shown(str(path))} appears twice")
        if path in self._folders:
            raise Refused(f"{shown(str(path))} is a file and a directory at once")
        self.add_folder(path.parent)
        self._files.add(path)

    def add_folder(self, path: PurePosixPath) -> None:
        """There is a directory here, once or several times. Raises Refused when a file is, or on the way."""
        while path not in self._folders:
            if path in self._files:
                raise Refused(f"{shown(str(path))} is a file and a directory at once")
            self._folders.add(path)
            path = path.parent


def unique_paths(paths: Iterable[PurePosixPath]) -> None:
    """Check that the files can exist side by side.

    Raises:
        Refused: one appears twice, or is a file and a directory at once.
    """
    together = PathSet()
    for path in paths:
        together.add_file(path)


def shown(text: str) -> str:
    """A foreign name as it may appear in a message: quoted, escaped, shortened."""
    quoted = ascii(text)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…{quoted[-1]}"


def _fault_of(text: str) -> str:
    if not text:
        return "is empty"
    if any(letter in _BAD_CHARACTERS or unicodedata.category(letter) in _BAD_CATEGORIES for letter in text):
        return "contains a backslash, a control character or one that hides what it reads"
    if text.startswith("/"):
        return "is absolute"
    return _fault_of_parts(text.split("/"))


def _fault_of_parts(parts: list[str]) -> str:
    if any(part in {"", ".", ".."} for part in parts):
        return "has an empty part, . or .."
    if any(part.startswith(RESERVED) for part in parts):
        return f"uses a name that begins with {RESERVED}, which only markers do"
    sizes = [len(part.encode()) for part in parts]
    if max(sizes) > MAX_NAME:
        return f"has a part of more than {MAX_NAME} bytes"
    if sum(sizes) + len(parts) - 1 > MAX_PATH or len(parts) > MAX_DEPTH:
        return f"is longer than {MAX_PATH} bytes or deeper than {MAX_DEPTH} directories"
    return ""
