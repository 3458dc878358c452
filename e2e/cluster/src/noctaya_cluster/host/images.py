"""The images that the cluster itself needs, and how any image gets to the nodes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .. import keda
from ..archive import StaticImage, write_image
from ..errors import ClusterError
from .addons import DNS_IMAGE
from .machines import Machine
from .node import PAUSE_IMAGE

NAMESPACE = "k8s.io"
"""Where Kubernetes' images live in containerd."""


def cache_folder() -> Path:
    """Archives that need not be written again; `$XDG_CACHE_HOME` moves it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "noctaya" / "cluster" / "images"


def own_images(programs: Mapping[str, Path]) -> list[StaticImage]:
    """What Kubernetes, DNS and KEDA run."""
    return [
        StaticImage(PAUSE_IMAGE, programs["pause"], "/pause", user="65535", certificates=False),
        StaticImage(DNS_IMAGE, programs["coredns"], "/coredns", user="0"),
        *(StaticImage(keda.IMAGES[name], programs[name], path) for name, path in keda.PATHS.items()),
    ]


def ensure_archives(images: Iterable[StaticImage], folder: Path) -> list[Path]:
    """Archives of the images, written where they are not in `folder` yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda image: _ensure_archive(image, folder), images))


def _ensure_archive(image: StaticImage, folder: Path) -> Path:
    program = image.program.stat()
    says = f"{image}-{program.st_size}-{program.st_mtime_ns}"
    name = image.reference.rpartition("/")[2].replace(":", "-")
    archive = folder / f"{name}-{hashlib.sha256(says.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        write_image(image, archive)
    return archive


def load(nodes: Iterable[Machine], archives: Iterable[Path], *, snapshotter: str) -> None:
    """Import archives on every node, the nodes side by side. Raises ClusterError naming the archive."""
    files = [archive.resolve() for archive in archives]
    for file in files:
        if not file.is_file():
            raise ClusterError(f"there is no image archive {file}")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: _load(node, files, snapshotter), nodes))


def _load(node: Machine, files: list[Path], snapshotter: str) -> None:
    for file in files:
        argv = ["ctr", "--namespace", NAMESPACE, "images", "import", "--snapshotter", snapshotter, str(file)]
        node.run(argv, what=f"import of {file.name}")


def forget_old_archives(keep: Iterable[Path], folder: Path) -> None:
    """Remove archives of other versions."""
    kept = set(keep)
    for file in folder.glob("*.tar"):
        if file not in kept:
            file.unlink(missing_ok=True)
