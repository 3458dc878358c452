"""Where the engine, the base images and the built images live."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[4]
"""The repository: every build context is taken from here."""

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def cache_root() -> Path:
    """The folder for everything kept between runs; `$XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noctaya"


def engine_folder() -> Path:
    """State of the private engine: layers, sockets, locks, logs."""
    return cache_root() / "engine"


def base_folder() -> Path:
    """Base images made from Debian packages."""
    return cache_root() / "base"


def images_folder() -> Path:
    """Built images with what is known of them."""
    return cache_root() / "images"


def architecture() -> str:
    """This machine's name in image references and Debian, `amd64` or `arm64`."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)
