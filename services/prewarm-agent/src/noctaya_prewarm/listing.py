"""What a source has to offer: a pinned revision and its files, checked before anything is written."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from noctaya_prewarm.digest import Digest
from noctaya_prewarm.errors import NotFound, Refused
from noctaya_prewarm.safe_path import unique_paths

MAX_FILES = 100_000
MAX_FILE_BYTES = 16 * 2**40


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file of a source."""

    path: PurePosixPath
    size: int
    digest: Digest | None = None
    """What its content must hash to; None when the source tells nothing."""
    pin: str = ""
    """The source's own mark of this very version, e.g. an ETag; empty when the revision is enough."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Files of one revision, which never changes: a commit, or a digest over what was listed."""

    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def select(listing: Listing, *, include: tuple[str, ...], exclude: tuple[str, ...]) -> Listing:
    """The files that any pattern of `include` matches (all, without one) and none of `exclude` does.

    Patterns match as in huggingface_hub: over the whole path, `*` also over slashes, and `folder/` means all
    below it.

    Raises:
        NotFound: nothing is left.
    """
    wanted = [_whole(pattern) for pattern in include] or ["*"]
    unwanted = [_whole(pattern) for pattern in exclude]
    files = tuple(
        file
        for file in listing.files
        if _matches(str(file.path), wanted) and not _matches(str(file.path), unwanted)
    )
    if not files:
        raise NotFound(
            f"none of the {len(listing.files)} files of the source is left by include {list(include)} and "
            f"exclude {list(exclude)}"
            if listing.files
            else "the source holds no file"
        )
    return Listing(revision=listing.revision, files=files)


def check(listing: Listing) -> Listing:
    """The listing, if all of it can be written safely.

    Raises:
        Refused: too many or too large files, a negative size, a path twice or below a file.
    """
    if len(listing.files) > MAX_FILES:
        raise Refused(f"the source lists {len(listing.files)} files; more than {MAX_FILES} are refused")
    for file in listing.files:
        if not 0 <= file.size <= MAX_FILE_BYTES:
            raise Refused(f"the source lists {file.path} with {file.size} bytes")
    unique_paths(file.path for file in listing.files)
    return listing


def _whole(pattern: str) -> str:
    return f"{pattern}*" if pattern.endswith("/") else pattern


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def digest_of(files: Iterable[RemoteFile]) -> str:
    """A revision for sources that have none: a digest over everything listed."""
    lines = sorted(f"{file.path}\0{file.size}\0{file.digest}\0{file.pin}\n" for file in files)
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()
