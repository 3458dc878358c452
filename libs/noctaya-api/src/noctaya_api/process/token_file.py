"""Bearer tokens kept in a file, re-read when the file changes.

A mounted Secret is replaced by swapping a symbolic link, so the file is found by name every time and
recognised by inode, modification time and size; the content is read again only when one of them moved.
Several tokens, one a line, give a rotation in which old and new are both accepted.
"""

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class TokenUnavailable(Exception):
    """The token file can't be used now: unreadable, blank, or a token in it is too short."""


class _Identity(NamedTuple):
    inode: int
    mtime_ns: int
    size: int


class TokenFile:
    """The tokens of one file.

    Args:
        path: the file; it need not exist yet.
        min_length: shortest token accepted, in bytes after trimming (contracts 4.2: 32 for demand reports).
        clock: the file is looked at once per reading of this clock; with an event loop's `time` that spares
        the
            `stat` to all but the first of the requests that one wake-up of the loop brings.
    """

    def __init__(self, path: Path, *, min_length: int = 1, clock: Callable[[], float] | None = None) -> None:
        self._path = path
        self._clock = clock
        self._looked: float | None = None
        self._min_length = min_length
        self._identity: _Identity | None = None
        self._tokens: tuple[bytes, ...] = ()
        self._digests: tuple[bytes, ...] = ()
        self._accepted: set[bytes] = set()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def tokens(self) -> tuple[bytes, ...]:
        """All tokens, in file order, trimmed; never empty. Costs one `stat` while the file stands still.

        Raises:
            TokenUnavailable: the file is unreadable or blank, or one of its tokens is too short.
        """
        now = None if self._clock is None else self._clock()
        if now is not None and now == self._looked:
            return self._tokens
        try:
            stat = self._path.stat()
            identity = _Identity(stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if identity == self._identity:
                self._looked = now
                return self._tokens
            content = self._path.read_bytes()
        except OSError as error:
            self._forget()
            raise TokenUnavailable(f"token file {self._path}: {error.strerror or error}") from error
        try:
            self._tokens = parse_tokens(content, min_length=self._min_length)
        except ValueError as error:
            self._forget()
            raise TokenUnavailable(f"token file {self._path}: {error}") from error
        self._accepted.clear()
        self._digests = tuple(hashlib.sha256(token).digest() for token in self._tokens)
        self._identity = identity
        self._looked = now
        return self._tokens

    def matches(self, presented: bytes) -> bool:
        """Whether `presented` is one of the tokens; compares digests and always looks at every one of them.

        Raises:
            TokenUnavailable: as `tokens`.
        """
        self.tokens()
        # Looked up by a keyed hash; only what the full comparison below once accepted is ever found.
        if presented in self._accepted:
            return True
        digest = hashlib.sha256(presented).digest()
        found = False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        if found:
            self._accepted.add(presented)
        return found

    def _forget(self) -> None:
        self._identity = None
        self._looked = None
        self._tokens = ()
        self._digests = ()
        self._accepted.clear()


def parse_tokens(content: bytes, *, min_length: int = 1) -> tuple[bytes, ...]:
    """The non-blank lines of `content`, trimmed.

    Raises:
        ValueError: no token at all, or one shorter than `min_length` bytes. The message never holds a token.
    """
    tokens = tuple(line for line in (raw.strip() for raw in content.splitlines()) if line)
    if not tokens:
        raise ValueError("holds no token")
    if any(len(token) < min_length for token in tokens):
        raise ValueError(f"holds a token shorter than {min_length} bytes")
    return tokens
