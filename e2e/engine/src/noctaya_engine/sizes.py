"""How large an image is: unpacked on a node, and as a registry would hold it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noctaya_engine.archive import opened

CHUNK: Final = 1 << 20
MEGABYTE: Final = 1_000_000


@dataclass(frozen=True)
class Sizes:
    """Bytes. `compressed` is the sum of the layers by gzip at its default level."""

    compressed: int
    unpacked: int

    def __str__(self) -> str:
        return f"{self.compressed / MEGABYTE:.0f} MB compressed, {self.unpacked / MEGABYTE:.0f} MB unpacked"


def measure(tar: Path) -> Sizes:
    """Read all layers of a docker-archive."""
    compressed = unpacked = 0
    with opened(tar) as archive:
        for layer in archive.layers:
            packer = zlib.compressobj(wbits=31)
            content = archive.raw_layer(layer)
            while chunk := content.read(CHUNK):
                unpacked += len(chunk)
                compressed += len(packer.compress(chunk))
            compressed += len(packer.flush())
    return Sizes(compressed, unpacked)
