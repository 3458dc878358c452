"""`follow-pull`: how far a registry's client is, seen from beside it.

The client that pulls an artifact tells nobody how many bytes it has. But it writes them into a layout, in
files named after their digests, and the manifest, which is fetched first, says how large each will be. What
is shown is an estimate for people: `stage` verifies afterwards and believes none of it.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from noctaya_prewarm.errors import Interrupted, Refused
from noctaya_prewarm.manifest import (
    ANNOTATION_FILEPATH,
    ANNOTATION_TITLE,
    MAX_MANIFEST,
    Layer,
    Manifest,
    parse_manifest,
)
from noctaya_prewarm.progress import Progress, State
from noctaya_prewarm.run import Run

INTERVAL: Final = 1.0
"""Seconds between two looks: a list of two directories."""
_PLACES: Final = ("blobs/sha256", "ingest")
"""Where a blob lies when it is whole, and while it arrives: `<digest>_<anything>`."""
_HEX: Final = 64

logger = logging.getLogger(__name__)


def follow_pull(run: Run, *, layout: Path, manifest: Path) -> None:
    """Count what arrives in `layout` until told to stop, which is the normal end.

    Args:
        run: its progress is what is served.
        layout: OCI image layout that another process writes; it need not be there yet.
        manifest: file with the artifact's manifest. Without a usable one nothing is counted.

    Raises:
        PrewarmError: the run's deadline has passed.
    """
    layers = _layers(manifest)
    sizes = {layer.digest: layer.size for layer in layers}
    run.progress.enter(State.PULLING)
    run.progress.plan(total=sum(sizes.values()))
    titles = {layer.digest: _title(layer) for layer in layers}
    known: dict[str, int] = {}
    try:
        while True:
            found = arrived(layout, sizes)
            _tell(run.progress, known, found, titles)
            known = found
            run.pause(INTERVAL)
    except Interrupted:
        logger.info("stopped", extra={"bytes": sum(known.values())})


def arrived(layout: Path, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each blob that are in a layout, by digest; never more than its size."""
    found: dict[str, int] = {}
    for name, size in _files(layout):
        digest = name[:_HEX]
        if digest in sizes and (len(name) == _HEX or name[_HEX] == "_"):
            found[digest] = max(found.get(digest, 0), min(size, sizes[digest]))
    return found


def _files(layout: Path) -> Iterator[tuple[str, int]]:
    for place in _PLACES:
        try:
            with os.scandir(layout / place) as entries:
                for entry in entries:
                    try:
                        yield entry.name, entry.stat(follow_symlinks=False).st_size
                    except FileNotFoundError:
                        # It is whole and was renamed between the two calls; the next look finds it.
                        continue
        except FileNotFoundError:
            continue


def _tell(
    progress: Progress, known: Mapping[str, int], found: Mapping[str, int], titles: Mapping[str, str]
) -> None:
    for digest in known.keys() | found.keys():
        more = found.get(digest, 0) - known.get(digest, 0)
        if more > 0:
            progress.add(more, titles[digest])
        elif more < 0:
            # The client begins a blob anew after a failure.
            progress.take_back(-more)


def _layers(file: Path) -> tuple[Layer, ...]:
    try:
        with file.open("rb") as content:
            return _parsed(content.read(MAX_MANIFEST + 1)).layers
    except (OSError, Refused) as error:
        # The client or `stage` will say what is wrong; this only counts.
        logger.warning("the manifest can't be read, nothing is counted", extra={"why": str(error)})
        return ()


def _parsed(content: bytes) -> Manifest:
    if len(content) > MAX_MANIFEST:
        raise Refused(f"it has more than {MAX_MANIFEST} bytes")
    return parse_manifest(content)


def _title(layer: Layer) -> str:
    named = layer.annotations
    return named.get(ANNOTATION_TITLE) or named.get(ANNOTATION_FILEPATH) or str(layer)
