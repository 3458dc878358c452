"""File access below one directory that never follows a symbolic link.

A shared claim may be written by others. Paths are therefore walked name by name with directory handles, and a
link or a file where a directory should be is refused instead of followed.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from noctaya_prewarm.errors import Refused

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = frozenset({errno.ELOOP, errno.ENOTDIR})


class Tree:
    """Everything below `root`, which need not exist before `make`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self) -> None:
        """Create the root and its parents. Raises OSError when that fails, Refused when it is a link."""
        self.root.mkdir(parents=True, exist_ok=True)
        with self._directory(PurePosixPath(), create=False):
            pass

    def open_file(self, path: PurePosixPath, flags: int, *, create_parents: bool = False) -> int:
        """An open descriptor; a new file gets mode 0664 less the umask.

        Raises:
            Refused: something in the way is a link or no directory, or the file is not a plain one.
            OSError: as `os.open`.
        """
        with self._directory(path.parent, create=create_parents) as parent:
            try:
                handle = os.open(
                    path.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o664, dir_fd=parent
                )
            except OSError as error:
                raise self._explained(error, path) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Refused(f"{self.root / path} is not a plain file; remove it")
        return handle

    def stat(self, path: PurePosixPath) -> os.stat_result | None:
        """What lies at `path`, a link itself and not what it leads to; None when there is nothing.

        Raises:
            Refused: something on the way is a link.
        """
        try:
            with self._directory(path.parent, create=False) as parent:
                return os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def move(self, source: PurePosixPath, target: PurePosixPath) -> None:
        """Rename within the tree, over what lies there; makes the target's parents. Raises as `open_file`."""
        with (
            self._directory(source.parent, create=False) as old,
            self._directory(target.parent, create=True) as new,
        ):
            os.rename(source.name, target.name, src_dir_fd=old, dst_dir_fd=new)

    def remove(self, path: PurePosixPath) -> None:
        """Remove a file or a link; nothing there is fine."""
        try:
            with self._directory(path.parent, create=False) as parent:
                os.unlink(path.name, dir_fd=parent)
        except FileNotFoundError:
            return

    def files(self) -> Iterator[tuple[PurePosixPath, os.stat_result]]:
        """Everything that is no directory, links unfollowed, in no particular order."""
        for folder, _, names, handle in os.fwalk(self.root, follow_symlinks=False):
            relative = PurePosixPath(folder).relative_to(self.root)
            for name in names:
                yield relative / name, os.stat(name, dir_fd=handle, follow_symlinks=False)

    def folders(self) -> Iterator[Path]:
        """Every directory, the deepest first, the root last."""
        for folder, _, _, _ in os.fwalk(self.root, topdown=False, follow_symlinks=False):
            yield Path(folder)

    @contextmanager
    def _directory(self, path: PurePosixPath, *, create: bool) -> Iterator[int]:
        handle = self._open_directory(str(self.root), path, None, create=False)
        try:
            for name in path.parts:
                deeper = self._open_directory(name, path, handle, create=create)
                os.close(handle)
                handle = deeper
            yield handle
        finally:
            os.close(handle)

    def _open_directory(self, name: str, path: PurePosixPath, above: int | None, *, create: bool) -> int:
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o775, dir_fd=above)
            return os.open(name, _DIRECTORY, dir_fd=above)
        except OSError as error:
            raise self._explained(error, path) from error

    def _explained(self, error: OSError, path: PurePosixPath) -> Exception:
        if error.errno in _IN_THE_WAY:
            return Refused(f"a link or a file is in the way of {self.root / path}; remove it")
        return error
