"""From verified layers to files in the partial directory of a model.

A layer that is a file is hashed while it is copied. A layer that is an archive is hashed as a whole before
its first byte is interpreted, and its members are hashed as they are written: the marker vouches for them.
"""

import hashlib
import os
from pathlib import PurePosixPath
from typing import Final

from noctaya_prewarm.artifact import Archive, Content, PlainFile
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import IntegrityFault, Refused
from noctaya_prewarm.inflate import Budget, Inflated
from noctaya_prewarm.lease import Lease
from noctaya_prewarm.listing import RemoteFile
from noctaya_prewarm.manifest import MAX_LAYERS, check_digest
from noctaya_prewarm.marker import MarkedFile
from noctaya_prewarm.oci_layout import Layout
from noctaya_prewarm.run import Run
from noctaya_prewarm.safe_path import PathSet, shown
from noctaya_prewarm.tar_reader import Member, TarReader
from noctaya_prewarm.workspace import Workspace

MAX_MEMBERS: Final = MAX_LAYERS
"""Files and directories of all archives of one artifact."""
_BLOCK: Final = 1 << 20


class Unpacker:
    """Writes the files of one artifact. Whoever uses it holds the lease.

    Args:
        run: ends the work when it ends.
        content: what the artifact consists of.
        lease: is checked before every write.
        layout: where the layers are.
        workspace: where the files go.
    """

    def __init__(
        self, run: Run, content: Content, *, lease: Lease, layout: Layout, workspace: Workspace
    ) -> None:
        self._run = run
        self._budget = Budget(stored=sum(archive.layer.size for archive in content.archives))
        self._lease = lease
        self._layout = layout
        self._workspace = workspace
        self._members = 0

    def copy(self, file: PlainFile) -> MarkedFile:
        """Copy one layer to its place.

        Raises:
            IntegrityFault: it is not what the manifest says.
            OSError: it can't be written.
        """
        source = self._layout.open_layer(file.layer)
        try:
            digest = Digest(kind=Kind.SHA256, value=file.layer.digest)
            wanted = RemoteFile(path=file.path, size=file.layer.size, digest=digest)
            return self._write(wanted, _Blob(self._run, source), file.layer.digest, str(file.layer))
        finally:
            os.close(source)

    def unpack(self, archive: Archive, taken: PathSet) -> list[MarkedFile]:
        """Unpack one layer, adding the paths it writes to `taken`.

        Raises:
            Refused: the archive holds something that is never written, or a file that another layer holds.
            IntegrityFault: it is not what the manifest says.
            OSError: it can't be written.
        """
        what = str(archive.layer)
        handle = self._layout.open_layer(archive.layer)
        try:
            self._layout.check_layer(archive.layer, handle)
            content = Inflated(_Blob(self._run, handle), budget=self._budget, what=what)
            reader = TarReader(content, what=what)
            written = [
                self._unpack_file(reader, member, what)
                for member in reader
                if self._admit(member, archive, taken) and not member.is_directory
            ]
            if archive.tar_digest:
                check_digest(content.digest, archive.tar_digest, f"the unpacked {what}")
            return written
        finally:
            os.close(handle)

    def _admit(self, member: Member, archive: Archive, taken: PathSet) -> bool:
        """Whether there is something to write, once it is sure that it may be written."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise Refused(f"the archives hold more than {MAX_MEMBERS} files and directories")
        path = member.path
        if path != archive.folder and archive.folder not in path.parents:
            raise Refused(
                f"{archive.layer} holds {shown(str(path))}, which is outside of its directory "
                f"{shown(str(archive.folder))}"
            )
        if member.is_directory:
            taken.add_folder(path)
        else:
            taken.add_file(path)
        return not member.is_directory

    def _unpack_file(self, reader: TarReader, member: Member, what: str) -> MarkedFile:
        wanted = RemoteFile(path=member.path, size=member.size)
        return self._write(wanted, reader, "", what)

    def _write(self, wanted: RemoteFile, source: "_Blob | TarReader", expected: str, what: str) -> MarkedFile:
        self._run.progress.at(str(wanted.path))
        name = PurePosixPath(f"{self._workspace.part_name(wanted)}.part")
        tree = self._workspace.partial
        tree.remove(name)
        handle = tree.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, create_parents=True)
        try:
            found = self._fill(handle, source, wanted.size, what)
            if expected:
                check_digest(found, expected, what)
            os.fsync(handle)
            mtime_ns = os.fstat(handle).st_mtime_ns
        except BaseException:
            # Nothing of it can be taken up: it would have to be hashed from its beginning anyway.
            tree.remove(name)
            raise
        finally:
            os.close(handle)
        return self._workspace.accept(wanted, name, Digest(kind=Kind.SHA256, value=found), mtime_ns)

    def _fill(self, handle: int, source: "_Blob | TarReader", size: int, what: str) -> str:
        """Copy `size` bytes; gives their SHA-256."""
        digest = hashlib.sha256()
        left = size
        while left:
            self._run.check()
            self._lease.check()
            piece = source.read(min(_BLOCK, left))
            if not piece:
                raise IntegrityFault(f"{what} became shorter while it was read")
            digest.update(piece)
            _write_all(handle, piece)
            left -= len(piece)
        return digest.hexdigest()


class _Blob:
    """Reads an open file from its beginning and counts what it reads as progress."""

    def __init__(self, run: Run, handle: int) -> None:
        self._run = run
        self._handle = handle
        self._position = 0

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""
        piece = os.pread(self._handle, count, self._position)
        self._position += len(piece)
        self._run.check()
        self._run.progress.add(len(piece))
        return piece


def _write_all(handle: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(handle, view) :]
