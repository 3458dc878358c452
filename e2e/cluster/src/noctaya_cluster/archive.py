"""Images of one static program on an empty root, written without Docker, as `docker save` would.

The same program gives the same bytes, so an image's identity is its content.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

EPOCH: Final = "1970-01-01T00:00:00Z"
MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
TRUSTED: Final = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class StaticImage:
    """An image with one program.

    Args:
        reference: its name with a tag.
        program: a static executable on this machine.
        path: where it is in the image; also the entry point.
        user: numeric, since a root without /etc/passwd knows no names and `runAsNonRoot` wants a number.
        links: further paths of the program.
        certificates: whether the machine's trusted certificates come along.
    """

    reference: str
    program: Path
    path: str
    user: str = "1000"
    links: Mapping[str, str] = field(default_factory=dict)
    certificates: bool = True


def write_image(image: StaticImage, target: Path) -> None:
    """Write a Docker archive; under its final name only when it is complete."""
    partial = target.with_name(f".{target.name}.new")
    layer = partial.with_name(f"{partial.name}.layer")
    try:
        with layer.open("wb") as file:
            _write_layer(image, file)
        digest = _sha256(layer)
        config = json.dumps(_config(image, digest), sort_keys=True).encode()
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        manifest = [{"Config": config_name, "RepoTags": [image.reference], "Layers": [f"{digest}.tar"]}]
        with tarfile.open(partial, "w") as archive:
            _add_bytes(archive, config_name, config)
            with layer.open("rb") as content:
                archive.addfile(_entry(f"{digest}.tar", size=layer.stat().st_size), content)
            _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
        partial.replace(target)
    finally:
        layer.unlink(missing_ok=True)
        partial.unlink(missing_ok=True)


def _write_layer(image: StaticImage, file: BinaryIO) -> None:
    with tarfile.open(fileobj=file, mode="w") as layer:
        folders = ["tmp"]
        if image.certificates and TRUSTED.exists():
            folders += ["etc", "etc/ssl", "etc/ssl/certs"]
        for folder in folders:
            entry = _entry(folder, mode=0o1777 if folder == "tmp" else 0o755)
            entry.type = tarfile.DIRTYPE
            layer.addfile(entry)
        if len(folders) > 1:
            _add_bytes(layer, str(TRUSTED).lstrip("/"), TRUSTED.read_bytes())
        with image.program.open("rb") as program:
            entry = _entry(image.path.lstrip("/"), size=image.program.stat().st_size, mode=0o755)
            layer.addfile(entry, program)
        for name, to in image.links.items():
            link = _entry(name.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, to
            layer.addfile(link)


def _config(image: StaticImage, layer: str) -> dict[str, object]:
    return {
        "architecture": MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": EPOCH,
        "config": {
            "Entrypoint": [image.path],
            "User": image.user,
            "WorkingDir": "/",
            "Env": ["PATH=/"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": EPOCH, "created_by": f"noctaya: {image.path}"}],
    }


def _entry(name: str, *, size: int = 0, mode: int = 0o644) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, size=len(content)), io.BytesIO(content))


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
