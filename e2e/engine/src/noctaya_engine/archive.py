"""Reads an image out of a docker-archive tar: its configuration and the files that a container of it sees."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from noctaya_engine.errors import EngineError

WHITEOUT: Final = ".wh."
OPAQUE: Final = ".wh..wh..opq"


@dataclass(frozen=True)
class Entry:
    """One file, link or folder of an image and the layer that it comes from."""

    layer: str
    info: tarfile.TarInfo


class Archive:
    """An opened archive. Get one by `opened`.

    Attributes:
        identity: the digest that engines know the image by.
        references: its names.
        layers: in order, the base first.
        config: as the OCI image specification has it.
    """

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        manifest = json.load(self._member("manifest.json"))[0]
        self.references: list[str] = manifest["RepoTags"] or []
        self.layers: list[str] = manifest["Layers"]
        config = self._member(manifest["Config"]).read()
        self.config: dict[str, Any] = json.loads(config)
        self.identity: str = hashlib.sha256(config).hexdigest()

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the image."""
        return self.config.get("config", {}).get("Labels") or {}

    def files(self) -> dict[str, Entry]:
        """What a container sees, by path without a leading slash; deleted files are not there."""
        seen: dict[str, Entry] = {}
        for layer in self.layers:
            with self.layer(layer) as tar:
                for info in tar:
                    _apply(seen, layer, info)
        return seen

    def read(self, entries: Mapping[str, Entry], wanted: set[str]) -> dict[str, bytes]:
        """Contents of regular files."""
        found: dict[str, bytes] = {}
        for layer in self.layers:
            here = {name for name in wanted if entries[name].layer == layer}
            if not here:
                continue
            with self.layer(layer) as tar:
                for info in tar:
                    name = _clean(info.name)
                    if name in here and (opened := tar.extractfile(info)) is not None:
                        found[name] = opened.read()
        return found

    @contextmanager
    def layer(self, name: str) -> Iterator[tarfile.TarFile]:
        """The tar of one layer."""
        with tarfile.open(fileobj=self._member(name), mode="r:*") as tar:
            yield tar

    def raw_layer(self, name: str) -> IO[bytes]:
        """The bytes of one layer."""
        return self._member(name)

    def _member(self, name: str) -> IO[bytes]:
        try:
            opened = self._tar.extractfile(name)
        except KeyError:
            opened = None
        if opened is None:
            raise EngineError(f"{self._tar.name!s} is no docker-archive: it has no {name}")
        return opened


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive.

    Raises:
        EngineError: it is none.
    """
    with tarfile.open(path) as tar:
        yield Archive(tar)


def _clean(name: str) -> str:
    return str(PurePosixPath("/") / name)[1:]


def _apply(seen: dict[str, Entry], layer: str, info: tarfile.TarInfo) -> None:
    path = PurePosixPath("/") / info.name
    if path.name == OPAQUE:
        _drop(seen, f"{_clean(str(path.parent))}/", layer)
    elif path.name.startswith(WHITEOUT):
        gone = _clean(str(path.with_name(path.name.removeprefix(WHITEOUT))))
        seen.pop(gone, None)
        _drop(seen, f"{gone}/", layer)
    elif name := _clean(info.name):
        seen[name] = Entry(layer, info)


def _drop(seen: dict[str, Entry], prefix: str, layer: str) -> None:
    for name in [name for name, entry in seen.items() if name.startswith(prefix) and entry.layer != layer]:
        del seen[name]
