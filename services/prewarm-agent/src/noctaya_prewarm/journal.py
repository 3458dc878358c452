"""The journal of a part: which bytes of it were written, readable after a kill at any moment.

One line of JSON says what file the part is of; then one line `start end` for each stretch that was written
before the line was. A line that was torn by a kill is ignored, and so is a journal whose first line is not
the expected one. After a crash of the whole machine the journal may know more than the disk does; the file's
digest tells in the end.
"""

import json
import os

from noctaya_prewarm.digest import Digest
from noctaya_prewarm.intervals import Intervals

_MAX_BYTES = 16 * 2**20


def header(path: str, *, size: int, digest: Digest | None, pin: str) -> bytes:
    """The first line: what identifies the content. `pin` is the source's own mark of a version, which
    counts only without a digest: the same content of another revision is still the same."""
    known = f"pin {pin}" if digest is None else str(digest)
    return json.dumps({"path": path, "size": size, "content": known}).encode() + b"\n"


def read_journal(content: bytes, *, first: bytes, size: int, on_disk: int) -> Intervals:
    """The stretches that a journal lists.

    Args:
        content: the whole journal.
        first: the header it must begin with; another one means that the part is of another version.
        size: bytes of the whole file; `on_disk`: bytes of the part. Stretches beyond either are nonsense and
            end the reading.
        on_disk: see `size`.
    """
    found = Intervals()
    if not content.startswith(first):
        return found
    lines = content[len(first) :].split(b"\n")
    for line in lines[:-1]:
        words = line.split(b" ")
        if len(words) != 2 or not all(word.isdigit() and len(word) < 20 for word in words):
            break
        start, end = int(words[0]), int(words[1])
        if not start < end <= min(size, on_disk):
            break
        found.add(start, end)
    return found


class JournalWriter:
    """Appends to a journal that is open for appending."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def restart(self, first: bytes, known: Intervals) -> None:
        """Begin anew with `first` and what is known."""
        os.ftruncate(self._handle, 0)
        os.write(self._handle, first + b"".join(b"%d %d\n" % stretch for stretch in known))

    def add(self, start: int, end: int) -> None:
        """`[start, end)` has been written."""
        os.write(self._handle, b"%d %d\n" % (start, end))


def load(handle: int) -> bytes:
    """The journal's content; one of absurd length counts as empty."""
    size = os.fstat(handle).st_size
    return os.pread(handle, size, 0) if size <= _MAX_BYTES else b""
