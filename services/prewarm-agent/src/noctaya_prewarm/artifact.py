"""Which files an artifact will become: decided from the manifest alone, before anything is written.

Three ways to pack a model are understood. What `oras push` makes: a layer with a title is a file of that
name, or a directory if it is marked to be unpacked. The CNCF model format: the path stands in an annotation
of its own. And layers of an ordinary image: archives without a title.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from noctaya_prewarm.errors import Refused
from noctaya_prewarm.manifest import (
    ANNOTATION_FILEPATH,
    ANNOTATION_TAR_DIGEST,
    ANNOTATION_TITLE,
    ANNOTATION_UNPACK,
    Layer,
    Manifest,
    parse_digest,
)
from noctaya_prewarm.safe_path import safe_path, shown, unique_paths

_EMPTY: Final = "application/vnd.oci.empty.v1+json"
_ARCHIVES: Final = (".tar", ".tar+gzip", ".tar.gzip", ".tar+zstd", ".tar.zstd")


@dataclass(frozen=True, kw_only=True)
class PlainFile:
    """A layer that is a file."""

    path: PurePosixPath
    layer: Layer


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A layer that is an archive of files.

    Attributes:
        folder: directory that all of its members must be in; the empty path is the whole target.
        tar_digest: SHA-256 of the archive before compression, or empty.
    """

    layer: Layer
    folder: PurePosixPath
    tar_digest: str = ""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What an artifact unpacks to."""

    files: tuple[PlainFile, ...]
    archives: tuple[Archive, ...]

    @property
    def total(self) -> int:
        """Bytes of all layers."""
        return sum(one.layer.size for one in self.files) + sum(one.layer.size for one in self.archives)


def plan_content(manifest: Manifest) -> Content:
    """Decide what each layer becomes.

    Raises:
        Refused: a name is not harmless, two layers are to be the same file, a layer can't be named, or there
            is nothing at all.
    """
    files: list[PlainFile] = []
    archives: list[Archive] = []
    for layer in manifest.layers:
        planned = _plan_layer(layer)
        if isinstance(planned, PlainFile):
            files.append(planned)
        elif planned is not None:
            archives.append(planned)
    if not files and not archives:
        raise Refused("the artifact holds no file")
    unique_paths(one.path for one in files)
    return Content(files=tuple(files), archives=tuple(archives))


def _plan_layer(layer: Layer) -> PlainFile | Archive | None:
    title = layer.annotations.get(ANNOTATION_TITLE)
    packed = layer.media_type.endswith(_ARCHIVES)
    if title is not None:
        path = safe_path(title, what=f"title of layer {layer.number}")
        # oras gives every file the media type of an archive; only its own mark says that a layer is one.
        if layer.annotations.get(ANNOTATION_UNPACK) != "true":
            return PlainFile(path=path, layer=layer)
        digest = layer.annotations.get(ANNOTATION_TAR_DIGEST)
        tar_digest = "" if digest is None else parse_digest(digest, f"the unpacked layer {layer.number}")
        return Archive(layer=layer, folder=path, tar_digest=tar_digest)
    filepath = layer.annotations.get(ANNOTATION_FILEPATH)
    if filepath is not None and not packed:
        return PlainFile(path=safe_path(filepath, what=f"path of layer {layer.number}"), layer=layer)
    if packed:
        return Archive(layer=layer, folder=PurePosixPath())
    if layer.media_type == _EMPTY:
        return None
    raise Refused(
        f"layer {layer.number} of type {shown(layer.media_type)} has no title that says which file it is; "
        "push the artifact with oras, which writes titles"
    )
