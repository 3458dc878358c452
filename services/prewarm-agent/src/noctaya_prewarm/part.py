"""One file on its way: what of it is written, what of that is hashed, and what is missing.

Several threads write stretches of the file. The hash needs the bytes in order: who writes just where the hash
stands hashes the bytes in hand; what others wrote ahead is read back once the hash gets there, as is what an
earlier run left. So a file that one connection fetches is never read again.
"""

import os
import threading
from pathlib import Path, PurePosixPath

from noctaya_prewarm.digest import Digest, new_hasher
from noctaya_prewarm.journal import JournalWriter, header, load, read_journal
from noctaya_prewarm.listing import RemoteFile
from noctaya_prewarm.run import Run
from noctaya_prewarm.tree import Tree

_JOURNAL_EVERY = 2 * 2**20
_BLOCK = 2**20


class Part:
    """The part of one file. Opening takes up what an earlier run left of the same version.

    Args:
        run: ends long hashing when it ends.
        tree: the directory of the parts.
        name: the part's file name; the journal lies beside it.
        file: what it is to become.
    """

    def __init__(self, run: Run, tree: Tree, name: str, file: RemoteFile) -> None:
        self._run = run
        self._tree = tree
        self.file = file
        self.path = PurePosixPath(f"{name}.part")
        self._journal_path = PurePosixPath(f"{name}.journal")
        self._lock = threading.Lock()
        self._hash_lock = threading.Lock()
        flags = os.O_RDWR | os.O_CREAT
        self._handle = tree.open_file(self.path, flags, create_parents=True)
        try:
            self._journal_handle = tree.open_file(self._journal_path, flags | os.O_APPEND)
        except BaseException:
            os.close(self._handle)
            raise
        self._journal = JournalWriter(self._journal_handle)
        first = header(str(file.path), size=file.size, digest=file.digest, pin=file.pin)
        on_disk = os.fstat(self._handle).st_size
        content = load(self._journal_handle)
        self._known = read_journal(content, first=first, size=file.size, on_disk=on_disk)
        self._journal.restart(first, self._known)
        self._first = first
        self._hasher = new_hasher(file.digest, size=file.size)
        self._hashed = 0

    @property
    def root(self) -> Path:
        """The directory that the part lies in, for messages."""
        return self._tree.root

    @property
    def present(self) -> int:
        """Bytes that are written."""
        with self._lock:
            return self._known.total

    def end_of_run(self, start: int) -> int:
        """The end of what is written without a gap from `start` on."""
        with self._lock:
            return self._known.end_of_run(start)

    def gaps(self) -> list[tuple[int, int]]:
        """What is missing, as half-open ranges in order."""
        with self._lock:
            return self._known.gaps(self.file.size)

    def writer(self) -> "PartWriter":
        """A writer for one thread."""
        return PartWriter(self)

    def put(self, offset: int, data: bytes) -> int:
        """Write bytes at `offset`. Returns how many of them are new. Raises OSError, e.g. on a full disk."""
        written = os.pwrite(self._handle, data, offset)
        while written < len(data):
            written += os.pwrite(self._handle, memoryview(data)[written:], offset + written)
        with self._lock:
            new = self._known.add(offset, offset + len(data))
        if self._hash_lock.acquire(blocking=False):
            try:
                if offset == self._hashed:
                    self._hasher.update(data)
                    self._hashed += len(data)
            finally:
                self._hash_lock.release()
        return new

    def record(self, start: int, end: int) -> None:
        """Note in the journal that `[start, end)` is written."""
        with self._lock:
            self._journal.add(start, end)

    def catch_up(self, *, wait: bool = False) -> None:
        """Hash what is written up to the first gap. While another thread does, return at once or `wait`."""
        if not self._hash_lock.acquire(blocking=wait):
            return
        try:
            while True:
                with self._lock:
                    end = self._known.end_of_run(self._hashed)
                if end == self._hashed:
                    return
                self._hash_until(end)
        finally:
            self._hash_lock.release()

    def digest(self) -> Digest:
        """The digest of the file, which must be whole."""
        self.catch_up(wait=True)
        assert self._hashed == self.file.size
        return self._hasher.digest()

    def discard(self) -> int:
        """Forget all content. Returns how many bytes that were."""
        with self._hash_lock, self._lock:
            lost = self._known.total
            self._known.clear()
            self._journal.restart(self._first, self._known)
            os.ftruncate(self._handle, 0)
            self._hasher = new_hasher(self.file.digest, size=self.file.size)
            self._hashed = 0
        return lost

    def sync(self) -> os.stat_result:
        """Make the content durable. Returns the file's state."""
        os.fsync(self._handle)
        return os.fstat(self._handle)

    def drop_journal(self) -> None:
        """Remove the journal of a part that was moved to its place."""
        self._tree.remove(self._journal_path)

    def close(self) -> None:
        """Close the files; what is written stays."""
        os.close(self._handle)
        os.close(self._journal_handle)

    def _hash_until(self, end: int) -> None:
        buffer = memoryview(bytearray(_BLOCK))
        while self._hashed < end:
            self._run.check()
            got = os.preadv(self._handle, [buffer[: end - self._hashed]], self._hashed)
            if got == 0:
                raise OSError(f"{self.file.path}: the part became shorter while it was read")
            self._hasher.update(buffer[:got])
            self._hashed += got


class PartWriter:
    """Writes one stretch after another and journals them in large steps. For one thread; use as a context."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._start = 0
        self._end = 0

    def __enter__(self) -> "PartWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def put(self, offset: int, data: bytes) -> int:
        """Write bytes at `offset`. Returns how many are new. Raises OSError."""
        if offset != self._end:
            self._flush()
            self._start = offset
        new = self._part.put(offset, data)
        self._end = offset + len(data)
        if self._end - self._start >= _JOURNAL_EVERY:
            self._flush()
        return new

    def _flush(self) -> None:
        if self._start < self._end:
            self._part.record(self._start, self._end)
            self._start = self._end
