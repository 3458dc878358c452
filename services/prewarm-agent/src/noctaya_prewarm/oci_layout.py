"""The OCI image layout that the pull container leaves: an index, and blobs named by their digests.

The pull is not trusted to have checked anything. A blob counts for what its bytes hash to; its name only says
where to look.
"""

import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import Any, Final

from noctaya_prewarm.errors import IntegrityFault, NotFound
from noctaya_prewarm.manifest import (
    MAX_MANIFEST,
    Layer,
    Manifest,
    check_digest,
    parse_digest,
    parse_manifest,
    parse_object,
)
from noctaya_prewarm.run import Run
from noctaya_prewarm.tree import Tree

PULLED_TAG: Final = "artifact"
"""The name under which the pull container writes what it pulled."""
_ANNOTATION_NAME: Final = "org.opencontainers.image.ref.name"
_INDEX: Final = PurePosixPath("index.json")
_BLOCK: Final = 1 << 20


class Layout:
    """A layout below `folder`; nothing in it is changed, and no link in it is followed."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._tree = Tree(folder)

    def pulled_digest(self) -> str:
        """The digest, in hexadecimal, of what was pulled: of the named entry, or the only one.

        Raises:
            NotFound: there is no layout, or not one that says what was pulled.
            Refused: the index is malformed.
        """
        index = parse_object(self._read_small(_INDEX, "the layout's index"), "the layout's index")
        entries = index.get("manifests")
        found = [one for one in (entries if isinstance(entries, list) else []) if isinstance(one, dict)]
        named = [one for one in found if _name_of(one) == PULLED_TAG]
        chosen = named or found
        if len(chosen) != 1:
            raise NotFound(
                f"the layout at {self._tree.root} does not say what was pulled: it has {len(found)} entries, "
                f"{len(named)} of them called {PULLED_TAG}"
            )
        return parse_digest(chosen[0].get("digest"), "the entry of the layout's index")

    def read_manifest(self, digest: str) -> Manifest:
        """The manifest with this digest.

        Raises:
            IntegrityFault: the pull didn't bring it, or brought other bytes.
            Refused: it is not the manifest of an artifact.
        """
        content = self._read_small(_blob(digest), f"the manifest sha256:{digest}")
        check_digest(hashlib.sha256(content).hexdigest(), digest, "the pulled manifest")
        return parse_manifest(content)

    def open_layer(self, layer: Layer) -> int:
        """A descriptor to read a layer's blob, whose length is right and whose content is not checked yet.

        Raises:
            IntegrityFault: it is missing or has another size than the manifest says.
        """
        handle = self._open(_blob(layer.digest), str(layer))
        size = os.fstat(handle).st_size
        if size != layer.size:
            os.close(handle)
            raise IntegrityFault(
                f"{layer} has {size} bytes, not the {layer.size} that the manifest says; it was cut on the "
                "way or the registry does not serve what it announces"
            )
        return handle

    def check_layer(self, layer: Layer, handle: int) -> None:
        """Hash an open blob.

        Raises:
            IntegrityFault: the content is not what the manifest says.
        """
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(_BLOCK))
        position = 0
        while got := os.preadv(handle, [buffer], position):
            self._run.check()
            digest.update(buffer[:got])
            position += got
        check_digest(digest.hexdigest(), layer.digest, str(layer))

    def _read_small(self, path: PurePosixPath, what: str) -> bytes:
        with os.fdopen(self._open(path, what), "rb") as file:
            content = file.read(MAX_MANIFEST + 1)
        if len(content) > MAX_MANIFEST:
            raise IntegrityFault(f"{what} has more than {MAX_MANIFEST} bytes")
        return content

    def _open(self, path: PurePosixPath, what: str) -> int:
        try:
            return self._tree.open_file(path, os.O_RDONLY)
        except FileNotFoundError:
            raise IntegrityFault(
                f"{what} is missing below {self._tree.root}; the pull container did not end well, or pulled "
                "something else"
            ) from None


def _name_of(entry: dict[str, Any]) -> Any:
    annotations = entry.get("annotations")
    return annotations.get(_ANNOTATION_NAME) if isinstance(annotations, dict) else None


def _blob(digest: str) -> PurePosixPath:
    return PurePosixPath("blobs", "sha256", digest)
