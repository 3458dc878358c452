"""Artifacts for tests, honest and otherwise: layers, archives, layouts on disk."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = {
    "mediaType": "application/vnd.oci.empty.v1+json",
    "digest": f"sha256:{hashlib.sha256(b'{}').hexdigest()}",
    "size": 2,
}
TITLE = "org.opencontainers.image.title"
REPOSITORY = "reg.example:5000/team/model"
Member = tuple[str, bytes] | tarfile.TarInfo


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def descriptor(content: bytes, *, media_type: str = LAYER, **annotations: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "mediaType": media_type,
        "digest": f"sha256:{sha256(content)}",
        "size": len(content),
    }
    return made | ({"annotations": annotations} if annotations else {})


def titled(content: bytes, title: str) -> dict[str, Any]:
    """The descriptor of a file as `oras push` writes it."""
    return descriptor(content, **{TITLE: title})


def manifest_of(layers: Sequence[Mapping[str, Any]], /, **fields: Any) -> bytes:
    document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": EMPTY, "layers": list(layers)} | fields
    return json.dumps(document).encode()


def tar_of(members: Iterable[Member], *, form: int = tarfile.PAX_FORMAT) -> bytes:
    """An archive of files, and of whatever a TarInfo describes (without content)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member, io.BytesIO(b"\0" * member.size))
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def special(name: str, kind: bytes, *, linkname: str = "") -> tarfile.TarInfo:
    """A member that is no file."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = linkname
    return info


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def unpacked_layer(archive: bytes, folder: str) -> tuple[bytes, dict[str, Any]]:
    """A directory as `oras push` packs it: blob and descriptor."""
    blob = packed(archive)
    notes = {
        TITLE: folder,
        "io.deis.oras.content.unpack": "true",
        "io.deis.oras.content.digest": f"sha256:{sha256(archive)}",
    }
    return blob, descriptor(blob, media_type=LAYER_GZIP, **notes)


class LayoutWriter:
    """Writes an OCI image layout as the pull container does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._blobs = root / "blobs" / "sha256"
        self._blobs.mkdir(parents=True)
        (root / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self.point([])

    def blob(self, content: bytes, *, name: str = "") -> Path:
        """Put a blob; under a name that is not its digest if one is given."""
        path = self._blobs / (name or sha256(content))
        path.write_bytes(content)
        return path

    def point(self, manifests: list[dict[str, Any]]) -> None:
        """Write the index."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
        (self.root / "index.json").write_text(json.dumps(index))

    def manifest(self, content: bytes, *, media_type: str = MANIFEST) -> str:
        """Put a manifest and point the index to it. Gives its digest."""
        self.blob(content)
        entry = descriptor(
            content, media_type=media_type, **{"org.opencontainers.image.ref.name": "artifact"}
        )
        self.point([entry])
        return sha256(content)

    def files(self, files: Mapping[str, bytes]) -> str:
        """An artifact of plain files. Gives its digest."""
        for content in files.values():
            self.blob(content)
        return self.manifest(manifest_of([titled(content, title) for title, content in files.items()]))

    def archives(self, *archives: bytes) -> str:
        """An artifact of compressed archives without titles. Gives its digest."""
        blobs = [packed(archive) for archive in archives]
        for blob in blobs:
            self.blob(blob)
        return self.manifest(manifest_of([descriptor(blob, media_type=LAYER_GZIP) for blob in blobs]))


def source_of(digest: str) -> str:
    return f"oci://{REPOSITORY}@sha256:{digest}"


def tree_of(root: Path) -> dict[str, bytes]:
    """All files below a directory but the marker."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != ".noctaya-ready"
    }
