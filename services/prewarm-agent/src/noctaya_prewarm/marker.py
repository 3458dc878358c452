"""The marker: the file that says a model is completely there, and what was verified before it was written.

It is written last and synced, so whoever finds it may read the model. An empty marker is the v0.4 alpha's; it
says nothing about the source.
"""

import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final, Literal

from noctaya_api.names import READY_MARKER
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from noctaya_prewarm.errors import IntegrityFault
from noctaya_prewarm.syncing import sync_directory, write_synced

VERSION: Final = 1
AGENT: Final = version("noctaya-prewarm")
"""Version of this agent."""
_MAX_BYTES: Final = 64 * 2**20


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", strict=True
    )


class MarkedFile(_Wire):
    """One verified file: where it lies below the target, how long it is, and what it was verified against.

    `mtime_ns` is that of the file when the marker was written; a cheap check compares it, where it is known.
    `pin` is the source's own mark of the version, only where the source told no digest.
    """

    path: str
    size: Annotated[int, Field(ge=0)]
    sha256: str = ""
    git_sha1: str = ""
    md5: str = ""
    crc32: str = ""
    s3_etag: str = ""
    part_size: int = 0
    mtime_ns: int = 0
    pin: str = ""


class Marker(_Wire):
    """What a marker says."""

    version: Literal[1] = VERSION
    source: str
    revision: str
    target: str
    include: tuple[str, ...] = Field(default=(), strict=False)
    exclude: tuple[str, ...] = Field(default=(), strict=False)
    files: tuple[MarkedFile, ...] = Field(strict=False)
    total: Annotated[int, Field(ge=0, alias="bytes")]
    agent: str
    completed_at: str

    def encode(self) -> bytes:
        """The marker's text: one JSON object, a newline at the end; empty fields are left out."""
        text = self.model_dump_json(by_alias=True, exclude_defaults=True, exclude={"version"})
        return b'{"version":%d,' % VERSION + text.removeprefix("{").encode() + b"\n"


class AlphaMarker:
    """An empty marker, as the v0.4 alpha wrote it."""


def timestamp(seconds: float) -> str:
    """A moment, given in seconds since 1970, as RFC 3339 in UTC with whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def default_marker(target: Path) -> Path:
    """Where the marker of `target` lies unless it is said otherwise."""
    return target / READY_MARKER


def write_marker(path: Path, marker: Marker) -> None:
    """Write and sync the marker, so that it exists completely or not at all.

    Raises:
        OSError: it can't be written.
    """
    write_synced(path, marker.encode())


def read_marker(path: Path) -> Marker | AlphaMarker | None:
    """The marker at `path`, or None when there is none.

    Raises:
        IntegrityFault: there is a file, and it is no marker of a version this agent knows.
        OSError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not content.strip():
        return AlphaMarker()
    if len(content) > _MAX_BYTES:
        raise IntegrityFault(f"marker {path} is larger than {_MAX_BYTES} bytes")
    try:
        return Marker.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "content"
        raise IntegrityFault(
            f"marker {path} is not one this agent can read: {where}: {first['msg']}"
        ) from error


def remove_marker(path: Path) -> None:
    """Take the marker away, synced: from now on the model counts as not there.

    Raises:
        OSError: it can't be removed.
    """
    try:
        os.unlink(path)  # noqa: PTH108  a dangling symbolic link goes too
    except (FileNotFoundError, NotADirectoryError):
        return
    sync_directory(path.parent)
