"""Is a model what its marker says? Cheaply by sizes and times, or by reading every byte.

The cheap check trusts a file whose size and modification time are those that the marker recorded. A file with
another time was copied or touched; it is hashed rather than doubted or believed.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from noctaya_api.names import READY_MARKER

from noctaya_prewarm.digest import Digest, Hasher, Kind, new_hasher
from noctaya_prewarm.errors import IntegrityFault, NotFound, Refused
from noctaya_prewarm.marker import AlphaMarker, MarkedFile, Marker, read_marker
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run
from noctaya_prewarm.safe_path import safe_path
from noctaya_prewarm.tree import Tree

_BLOCK = 1024 * 1024
_SHOWN = 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Problem:
    """One file that is not what the marker says."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def verify(run: Run, *, marker: Path, deep: bool) -> None:
    """Check the model of `marker`.

    Raises:
        NotFound: there is no marker.
        IntegrityFault: the marker or a file is wrong; the message names the first few.
    """
    found = read_marker(marker)
    if found is None:
        raise NotFound(f"there is no marker at {marker}")
    if isinstance(found, AlphaMarker):
        raise IntegrityFault(
            f"marker {marker} is empty, as v0.4 wrote it, and says nothing that could be verified; "
            "download the model again to get one that does"
        )
    run.revision = found.revision
    run.progress.enter(State.VERIFYING)
    run.progress.plan(total=found.total)
    # A marker in its model's directory belongs to that directory, wherever the volume is mounted today.
    root = marker.parent if marker.name == READY_MARKER else Path(found.target)
    problems = list_problems(run, found, root=root, deep=deep)
    if problems:
        shown = "; ".join(str(problem) for problem in problems[:_SHOWN])
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise IntegrityFault(f"{root} is not what its marker says: {shown}{more}")
    logger.info("verified", extra={"target": str(root), "files": len(found.files), "deep": deep})


def list_problems(run: Run, marker: Marker, *, deep: bool, root: Path | None = None) -> list[Problem]:
    """Every file of the marker that is missing below `root` (the marker's target without one) or different.

    Raises:
        PrewarmError: the run was aborted.
    """
    tree = Tree(Path(marker.target) if root is None else root)
    problems = []
    for file in marker.files:
        run.check()
        run.progress.at(file.path)
        what = _problem_of(run, tree, file, deep=deep)
        if what:
            problems.append(Problem(file.path, what))
    return problems


def expected_digest(file: MarkedFile) -> Digest | None:
    """What the marker says about a file's content, or None when it says nothing."""
    for kind, value in (
        (Kind.SHA256, file.sha256),
        (Kind.GIT_SHA1, file.git_sha1),
        (Kind.MD5, file.md5),
        (Kind.CRC32, file.crc32),
        (Kind.S3_ETAG, file.s3_etag),
    ):
        if value:
            return Digest(kind=kind, value=value, part_size=file.part_size)
    return None


def hash_file(run: Run, handle: int, hasher: Hasher, *, count: bool) -> None:
    """Feed a whole open file to `hasher`; `count` adds the bytes to the progress."""
    buffer = memoryview(bytearray(_BLOCK))
    position = 0
    while got := os.preadv(handle, [buffer], position):
        run.check()
        hasher.update(buffer[:got])
        position += got
        if count:
            run.progress.add(got)


def _problem_of(run: Run, tree: Tree, file: MarkedFile, *, deep: bool) -> str:
    try:
        handle = tree.open_file(safe_path(file.path), os.O_RDONLY)
    except FileNotFoundError:
        return "missing"
    except (OSError, Refused) as error:
        return str(error)
    try:
        status = os.fstat(handle)
        if status.st_size != file.size:
            return f"{status.st_size} bytes instead of {file.size}"
        expected = expected_digest(file)
        unchanged = file.mtime_ns != 0 and status.st_mtime_ns == file.mtime_ns
        if expected is None or (unchanged and not deep):
            run.progress.add(file.size)
            return ""
        hasher = new_hasher(expected, size=file.size)
        hash_file(run, handle, hasher, count=True)
        found = hasher.digest()
        return "" if found.value == expected.value else f"content is {found} instead of {expected}"
    finally:
        os.close(handle)
