"""Room on the target's file system, and what its errors mean for the person who has to act."""

import errno
import os
from pathlib import Path

from noctaya_prewarm.errors import BadSettings, NoSpace, PrewarmError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CLOSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def free_bytes(path: Path) -> int:
    """Bytes that a process without privileges may still write on the file system of `path`."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def check_room(path: Path, *, needed: int, margin: int) -> None:
    """Refuse to begin what can't end.

    Args:
        path: a directory on the file system to write.
        needed: bytes still to be written.
        margin: bytes that must stay free.

    Raises:
        NoSpace: there is less room; the message gives the numbers.
    """
    free = free_bytes(path)
    if needed and needed + margin > free:
        raise NoSpace(
            f"{human(needed)} are still to be written and {human(margin)} must stay free, but the file "
            f"system of {path} has {human(free)} left; make the cache larger by at least "
            f"{human(needed + margin - free)}"
        )


def explained(error: OSError, path: Path) -> PrewarmError:
    """The agent's error for a failed file operation at or below `path`."""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return NoSpace(
            f"the file system of {path} is full ({why}); what has arrived stays, make the cache larger and "
            "the next run goes on from there"
        )
    if error.errno in _CLOSED:
        return BadSettings(
            f"{error.filename or path} can't be written ({why}); the cache must be mounted read-write and be "
            "writable for this user or its groups (in a pod: securityContext.fsGroup)"
        )
    return PrewarmError(f"{error.filename or path}: {why}")


def human(count: int) -> str:
    """Bytes for people: `512 B`, `1.5 GiB`."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"
