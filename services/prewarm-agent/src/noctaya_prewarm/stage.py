"""`stage`: from the layout that was pulled to a model that can be trusted.

The manifest is checked against the digest, everything else against the manifest, and nothing is promoted
before all of it is right. A kill at any moment leaves a partial directory that the next run takes up.
"""

import logging
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Final

from noctaya_prewarm.artifact import Content, plan_content
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.disk import check_room, explained
from noctaya_prewarm.errors import BadSettings, IntegrityFault, Refused
from noctaya_prewarm.lease import Lease, hold, is_held
from noctaya_prewarm.listing import Listing, RemoteFile
from noctaya_prewarm.marker import (
    AGENT,
    AlphaMarker,
    MarkedFile,
    Marker,
    read_marker,
    remove_marker,
    timestamp,
    write_marker,
)
from noctaya_prewarm.oci_layout import Layout
from noctaya_prewarm.oci_source import parse_oci_source
from noctaya_prewarm.progress import State
from noctaya_prewarm.prune import prune as prune_others
from noctaya_prewarm.run import Run
from noctaya_prewarm.safe_path import PathSet
from noctaya_prewarm.tree import Tree
from noctaya_prewarm.unpacking import Unpacker
from noctaya_prewarm.verify import list_problems
from noctaya_prewarm.workspace import STATE, Workspace

PLACEHOLDER: Final = "{digest}"
"""In a target and a marker: replaced by the digest, which nobody knows before a tag is pulled."""

logger = logging.getLogger(__name__)


def stage(*, layout: Path, source: str, target: str, marker: str, prune: bool, run: Run) -> None:
    """Verify a pulled artifact and put it in place; return at once when it is there already.

    Args:
        layout: OCI image layout that the pull container wrote.
        source: the oci:// URI, by digest or by tag.
        target: directory to make; for a tag it must contain the placeholder.
        marker: file to write last.
        prune: remove the cache's other models first.
        run: is told the digest, for the termination message.

    Raises:
        IntegrityFault: what was pulled is not what the digest says.
        Refused: the artifact holds something that is never written.
        PrewarmError: no room, another agent, a bad argument, or the run was aborted.
    """
    model = parse_oci_source(source)
    if model.tag and PLACEHOLDER not in target:
        raise BadSettings(f"the target of a tag must contain {PLACEHOLDER}, or two contents would share it")
    run.progress.enter(State.LISTING)
    pulled = Layout(run, layout)
    digest = model.digest or pulled.pulled_digest()
    pinned = model.pinned(digest) if model.tag else model
    run.digest = run.revision = f"sha256:{digest}"
    staging = _Staging(
        run,
        layout=pulled,
        digest=digest,
        source=f"oci://{pinned.reference}",
        target=_filled_in(target, digest),
        marker=_filled_in(marker, digest),
    )
    if not prune and staging.is_done() and not staging.is_untidy():
        return
    with hold(run, staging.target) as lease:
        try:
            staging.perform(lease, prune=prune)
        except OSError as error:
            raise explained(error, staging.target) from error


class _Staging:
    def __init__(
        self, run: Run, *, layout: Layout, digest: str, source: str, target: Path, marker: Path
    ) -> None:
        self._run = run
        self._layout = layout
        self._digest = digest
        self._source = source
        self._marker = marker
        self.target = target

    def is_done(self) -> bool:
        """Whether the marker is there, is that of this digest, and its files still look as it says."""
        found = self._read_marker()
        if not isinstance(found, Marker):
            return False
        if found.revision != self._run.revision or found.target != str(self.target):
            return False
        self._run.progress.enter(State.VERIFYING)
        self._run.progress.plan(total=found.total)
        problems = list_problems(self._run, found, deep=False)
        if problems:
            logger.warning("staged again, a file has changed", extra={"problem": str(problems[0])})
            return False
        logger.info("the artifact is there already", extra={"target": str(self.target)})
        return True

    def is_untidy(self) -> bool:
        """Whether a run was killed after the marker and before it had put away its notes and its lease."""
        return (self.target / STATE).exists() or is_held(self.target)

    def perform(self, lease: Lease, *, prune: bool) -> None:
        """Do what is still to be done, whatever an earlier run or another agent has left."""
        if prune:
            prune_others(self.target)
        workspace = Workspace(self._run, self.target)
        if self.is_done():
            workspace.tidy()
            return
        content = plan_content(self._layout.read_manifest(self._digest))
        found = self._read_marker()
        if isinstance(found, AlphaMarker) and self._adopt(content):
            return
        if isinstance(found, Marker) and self.target.is_dir():
            workspace.open_again()
        remove_marker(self._marker)
        workspace.prepare()
        try:
            files = self._unpack(content, lease, workspace)
        except Refused:
            # The next attempt would refuse it again; until then it need not fill the cache.
            shutil.rmtree(workspace.partial.root)
            raise
        self._run.progress.enter(State.PROMOTING)
        lease.check()
        workspace.promote()
        self._write_marker(files)
        workspace.tidy()
        logger.info("staged", extra={"target": str(self.target), "files": len(files)})

    def _unpack(self, content: Content, lease: Lease, workspace: Workspace) -> list[MarkedFile]:
        wanted = {file.path: _remote(file.path, file.layer.size, file.layer.digest) for file in content.files}
        workspace.sweep(Listing(revision=self._run.revision, files=tuple(wanted.values())))
        self._run.progress.enter(State.VERIFYING)
        present = {path: found for path, one in wanted.items() if (found := workspace.find(one))}
        done = sum(found.size for found in present.values())
        check_room(self.target.parent, needed=content.total - done, margin=self._run.settings.disk_margin)
        self._run.progress.plan(total=content.total, done=done)
        self._run.progress.enter(State.STAGING)
        unpacker = Unpacker(self._run, content, lease=lease, layout=self._layout, workspace=workspace)
        files = [present.get(file.path) or unpacker.copy(file) for file in content.files]
        taken = PathSet()
        for path in wanted:
            taken.add_file(path)
        for archive in content.archives:
            files += unpacker.unpack(archive, taken)
        if not files:
            raise IntegrityFault("the artifact's archives hold no file")
        complete = tuple(_remote(PurePosixPath(file.path), file.size, file.sha256) for file in files)
        workspace.sweep(Listing(revision=self._run.revision, files=complete))
        return files

    def _adopt(self, content: Content) -> bool:
        """Vouch for what the v0.4 alpha staged, without moving it from under a server that reads it."""
        if content.archives:
            return False
        files = [
            MarkedFile(path=str(file.path), size=file.layer.size, sha256=file.layer.digest)
            for file in content.files
        ]
        self._run.progress.enter(State.VERIFYING)
        self._run.progress.plan(total=content.total)
        if list_problems(self._run, self._describe(files), deep=True):
            return False
        tree = Tree(self.target)
        known = []
        for file in files:
            status = tree.stat(PurePosixPath(file.path))
            known.append(file.model_copy(update={"mtime_ns": status.st_mtime_ns if status else 0}))
        self._write_marker(known)
        logger.info("adopted what an older version staged", extra={"target": str(self.target)})
        return True

    def _read_marker(self) -> Marker | AlphaMarker | None:
        try:
            return read_marker(self._marker)
        except IntegrityFault as error:
            logger.warning("the marker is not believed", extra={"why": str(error)})
        except OSError as error:
            raise explained(error, self._marker) from error
        return None

    def _write_marker(self, files: list[MarkedFile]) -> None:
        write_marker(self._marker, self._describe(files))

    def _describe(self, files: list[MarkedFile]) -> Marker:
        return Marker(
            source=self._source,
            revision=self._run.revision,
            target=str(self.target),
            files=tuple(files),
            total=sum(file.size for file in files),
            agent=AGENT,
            completed_at=timestamp(time.time()),
        )


def _remote(path: PurePosixPath, size: int, sha256: str) -> RemoteFile:
    return RemoteFile(path=path, size=size, digest=Digest(kind=Kind.SHA256, value=sha256))


def _filled_in(text: str, digest: str) -> Path:
    path = Path(text.replace(PLACEHOLDER, digest))
    if not path.is_absolute() or ".." in path.parts:
        raise BadSettings(f"{text} is not an absolute path without ..")
    return path
