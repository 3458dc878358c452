"""Writing so that a crash leaves the old file or the new one: synced content, atomic names, synced names."""

import contextlib
import os
import secrets
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make the names in `path` durable. File systems that can't sync a directory say so and are believed.

    Raises:
        OSError: the directory can't be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network and FUSE file systems answer EINVAL; their renames are durable by themselves or never.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes) -> None:
    """Put `content` at `path`, durable and all at once, whatever lay there before.

    Raises:
        OSError: it can't be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".noctaya-{secrets.token_hex(8)}.tmp")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o664)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
