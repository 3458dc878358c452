"""What a build gets: a tar of the declared inputs and nothing else.

A file that a Dockerfile copies without its being declared is not there, so the hash of the tar tells whether
anything of an image has changed.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEFT_OUT: Final = frozenset(
    {"__pycache__", "tests", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
)


@dataclass(frozen=True)
class Input:
    """One file of a context: its name there, its place here."""

    name: str
    path: Path

    @property
    def mode(self) -> int:
        """Only whether it can be run counts; what else a checkout does to modes does not."""
        return 0o755 if self.path.stat().st_mode & 0o100 else 0o644


def collect(root: Path, inputs: tuple[str, ...], parts: Mapping[str, Path]) -> list[Input]:
    """Every file of the context in order of name.

    Raises:
        FileNotFoundError: a declared input is not there.
    """
    found = {name: Input(name, path) for name, path in _files(root, inputs)}
    found.update({f"parts/{name}": Input(f"parts/{name}", path) for name, path in parts.items()})
    return [found[name] for name in sorted(found)]


def write_tar(files: list[Input], target: Path) -> str:
    """The context as `docker build -` takes it; returns its SHA-256, the same for the same files."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            entry.mode = file.mode
            with file.path.open("rb") as opened:
                entry.size = os.fstat(opened.fileno()).st_size
                tar.addfile(entry, opened)
    with target.open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()


def _files(root: Path, inputs: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for name in inputs:
        place = root / name
        if place.is_file():
            yield name, place
            continue
        if not place.is_dir():
            raise FileNotFoundError(f"{name} is declared as an input of an image and is not in {root}")
        for path in place.rglob("*"):
            inside = path.relative_to(root)
            if path.is_file() and not LEFT_OUT & set(inside.parts):
                yield str(inside), path
