"""The directories of one model: the target, and `<target>.partial` beside it, where everything happens first.

    <target>.partial/<path>                      a verified file
    <target>.partial/.noctaya-state/parts/<key>.part, .journal   a file on its way
    <target>.partial/.noctaya-state/verified     which files were verified, one JSON object a line
    <target>                                     appears by one rename, when everything is verified
    <target>/.noctaya-ready                      the marker, written last

A kill at any moment leaves one of these states, and each is taken up by the next run. A target without a
marker is nothing to rely on: it is taken back to be the partial directory, and what is right in it is kept.
"""

import hashlib
import json
import logging
import os
import secrets
import shutil
from pathlib import Path, PurePosixPath

from noctaya_prewarm.digest import Digest, Kind, new_hasher
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.listing import Listing, RemoteFile
from noctaya_prewarm.marker import MarkedFile
from noctaya_prewarm.prune import is_model_name
from noctaya_prewarm.run import Run
from noctaya_prewarm.syncing import sync_directory
from noctaya_prewarm.tree import Tree
from noctaya_prewarm.verify import expected_digest, hash_file

STATE = PurePosixPath(".noctaya-state")
_PARTS = STATE / "parts"
_VERIFIED = STATE / "verified"

logger = logging.getLogger(__name__)


class Workspace:
    """The directories of `target`. Whoever uses it holds the lease of the target."""

    def __init__(self, run: Run, target: Path) -> None:
        self._run = run
        self.target = target
        self.partial = Tree(target.with_name(f"{target.name}.partial"))
        self._verified: dict[str, MarkedFile] = {}

    def prepare(self) -> None:
        """Make the partial directory, or take up the one that is there. The target must have no marker.

        Raises:
            OSError, Refused: it can't be made.
        """
        if self.target.is_symlink() or (self.target.exists() and not self.target.is_dir()):
            raise BadSettings(f"{self.target} is no directory; remove it or name another target")
        if self.target.is_dir():
            self._take_back()
        self.partial.make()
        self._verified = self._read_verified()

    def part_name(self, file: RemoteFile) -> str:
        """Where the part of a file lies, relative to the partial directory and without the ending."""
        return f"{_PARTS}/{hashlib.sha256(str(file.path).encode()).hexdigest()[:32]}"

    def has_part(self, file: RemoteFile) -> bool:
        """Whether an earlier run left a part of this file."""
        return self.partial.stat(PurePosixPath(f"{self.part_name(file)}.part")) is not None

    def find(self, file: RemoteFile) -> MarkedFile | None:
        """The file in its place, if it is there and verified; one that nobody vouches for is hashed."""
        status = self.partial.stat(file.path)
        if status is None or status.st_size != file.size:
            return None
        known = self._verified.get(str(file.path))
        if known is not None and known.mtime_ns == status.st_mtime_ns and _same(known, file):
            return known
        handle = self.partial.open_file(file.path, os.O_RDONLY)
        try:
            hasher = new_hasher(file.digest, size=file.size)
            hash_file(self._run, handle, hasher, count=False)
        finally:
            os.close(handle)
        found = hasher.digest()
        # Without a digest there is nothing that an unknown file could be held to.
        if file.digest is None or found.value != file.digest.value:
            return None
        return self._vouch(file, found, status.st_mtime_ns)

    def accept(self, file: RemoteFile, part: PurePosixPath, digest: Digest, mtime_ns: int) -> MarkedFile:
        """Move a verified and synced part to its place. Raises OSError, Refused."""
        self.partial.move(part, file.path)
        return self._vouch(file, digest, mtime_ns)

    def sweep(self, listing: Listing) -> None:
        """Remove what is not of the listing: files of an older revision, parts of files that are no more."""
        wanted = {file.path for file in listing.files}
        for path, _ in list(self.partial.files()):
            if path not in wanted and path.parts[0] != STATE.name:
                logger.info("removed, not in the listing", extra={"file": str(path)})
                self.partial.remove(path)
        shutil.rmtree(self.partial.root / _PARTS, ignore_errors=True)

    def promote(self) -> None:
        """Make the partial directory the target, synced. Raises OSError."""
        for folder in self.partial.folders():
            sync_directory(folder)
        if self.target.exists():
            raise BadSettings(f"{self.target} appeared while the model arrived; who else writes there?")
        self.partial.root.rename(self.target)
        sync_directory(self.target.parent)

    def tidy(self) -> None:
        """Remove what only the next run would have needed; done after the marker."""
        shutil.rmtree(self.target / STATE, ignore_errors=True)
        for old in self.target.parent.glob(f"{self.target.name}.old-*"):
            shutil.rmtree(old, ignore_errors=True)

    def open_again(self) -> None:
        """Say that the target is not to be relied on, and ours to work on. Call before its marker is removed.

        Raises:
            OSError: the target can't be written.
        """
        (self.target / STATE).mkdir(exist_ok=True)

    def _take_back(self) -> None:
        ours = (self.target / STATE).is_dir() or is_model_name(self.target.name)
        if not ours and any(self.target.iterdir()):
            raise BadSettings(
                f"{self.target} exists and was not made by this agent, so nothing in it is touched; name a "
                "directory that doesn't exist yet"
            )
        if self.partial.root.is_symlink() or not self.partial.root.exists():
            try:
                self.target.rename(self.partial.root)
            except OSError as error:
                raise BadSettings(
                    f"{self.target} can't be renamed ({error.strerror}); a target must be a directory below "
                    "a volume and not the volume itself"
                ) from error
        else:
            self.target.rename(self.target.with_name(f"{self.target.name}.old-{secrets.token_hex(4)}"))
        logger.info("a target without a marker is taken up again", extra={"target": str(self.target)})

    def _vouch(self, file: RemoteFile, digest: Digest, mtime_ns: int) -> MarkedFile:
        marked = _marked(file, digest, mtime_ns)
        line = json.dumps(marked.model_dump(by_alias=True, exclude_defaults=True)).encode() + b"\n"
        handle = self.partial.open_file(
            _VERIFIED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, create_parents=True
        )
        try:
            os.write(handle, line)
        finally:
            os.close(handle)
        self._verified[marked.path] = marked
        return marked

    def _read_verified(self) -> dict[str, MarkedFile]:
        found: dict[str, MarkedFile] = {}
        if self.partial.stat(_VERIFIED) is None:
            return found
        handle = self.partial.open_file(_VERIFIED, os.O_RDONLY)
        with os.fdopen(handle, "rb") as file:
            for line in file:
                try:
                    marked = MarkedFile.model_validate_json(line)
                except ValueError:
                    continue  # torn by a kill; the file is hashed again
                found[marked.path] = marked
        return found


def _marked(file: RemoteFile, digest: Digest, mtime_ns: int) -> MarkedFile:
    values = {kind: digest.value if digest.kind is kind else "" for kind in Kind}
    return MarkedFile(
        path=str(file.path),
        size=file.size,
        sha256=values[Kind.SHA256],
        git_sha1=values[Kind.GIT_SHA1],
        md5=values[Kind.MD5],
        crc32=values[Kind.CRC32],
        s3_etag=values[Kind.S3_ETAG],
        part_size=digest.part_size,
        mtime_ns=mtime_ns,
        pin="" if file.digest is not None else file.pin,
    )


def _same(known: MarkedFile, file: RemoteFile) -> bool:
    if file.digest is None:
        return known.pin == file.pin
    return bool(expected_digest(known) == file.digest)
