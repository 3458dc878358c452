"""A bill of materials for an image, read from the image itself: CycloneDX 1.6 JSON.

Debian packages from dpkg's records, Python distributions from their metadata, Go modules from the
programs that carry them. What is listed is what is in the files, whatever a build meant to put there.
"""

from __future__ import annotations

import email.parser
import re
import shutil
import subprocess
import tempfile
import uuid
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from noctaya_engine import debian
from noctaya_engine.archive import Archive, Entry, opened
from noctaya_engine.errors import BuildFailed

GO_MARK: Final = b"\xff Go buildinf:"
METADATA: Final = re.compile(r"(?P<site>.+)/[^/]+\.dist-info/METADATA")
PREFIX: Final = "org.opencontainers.image."


def write_sbom(tar: Path, target: Path, *, reference: str, version: str) -> None:
    """Read the image in `tar` and write its bill of materials.

    Raises:
        BuildFailed: it would not be valid.
    """
    with opened(tar) as archive:
        bom = describe(archive, reference=reference, version=version)
    text: str = JsonV1Dot6(bom).output_as_string(indent=1)
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise BuildFailed(f"the bill of materials of {reference} is not valid CycloneDX: {fault}")
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(text + "\n")
    partial.replace(target)


def describe(archive: Archive, *, reference: str, version: str) -> Bom:
    """The bill of materials of an opened image; the same for the same image."""
    entries = archive.files()
    components = [
        *debian_packages(archive, entries),
        *python_distributions(archive, entries),
        *go_modules(archive, entries),
    ]
    bom = Bom(components=components)
    layers = archive.config["rootfs"]["diff_ids"]
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, " ".join([reference, *layers]))
    bom.metadata.timestamp = datetime.fromisoformat(
        archive.labels.get(f"{PREFIX}created", "1970-01-01T00:00:00+00:00").replace("Z", "+00:00")
    )
    labelled = (
        Property(name=name, value=value) for name, value in archive.labels.items() if name.startswith(PREFIX)
    )
    bom.metadata.component = Component(
        name=reference.rpartition(":")[0],
        version=archive.labels.get(f"{PREFIX}version", version),
        type=ComponentType.CONTAINER,
        bom_ref=reference,
        description=archive.labels.get(f"{PREFIX}description"),
        licenses=_licences(archive.labels.get(f"{PREFIX}licenses")),
        properties=labelled,
    )
    bom.register_dependency(bom.metadata.component, components)
    return bom


def debian_packages(archive: Archive, entries: dict[str, Entry]) -> list[Component]:
    """From `status` or, in images without dpkg, the files in `status.d`."""
    wanted = {
        name
        for name, entry in entries.items()
        if entry.info.isfile()
        and (name == str(debian.STATUS) or PurePosixPath(name).parent == PurePosixPath(debian.STATUS_PARTS))
        and not name.endswith(".md5sums")
    }
    text = "\n\n".join(content.decode() for content in archive.read(entries, wanted).values())
    return [
        Component(
            name=package.name,
            version=package.version,
            type=ComponentType.LIBRARY,
            bom_ref=f"deb:{package.name}",
            purl=PackageURL(
                "deb",
                "debian",
                package.name,
                package.version,
                {"arch": package.architecture, "distro": "bookworm", "upstream": package.source},
            ),
        )
        for _, package in sorted(debian.parse_status(text).items())
    ]


def python_distributions(archive: Archive, entries: dict[str, Entry]) -> list[Component]:
    """From the metadata of every installed distribution, wherever it lies."""
    wanted = {name for name in entries if METADATA.fullmatch(name)}
    components = []
    for name, content in sorted(archive.read(entries, wanted).items()):
        metadata = email.parser.BytesParser().parsebytes(content, headersonly=True)
        distribution = re.sub(r"[-_.]+", "-", metadata["Name"]).lower()
        components.append(
            Component(
                name=distribution,
                version=metadata["Version"],
                type=ComponentType.LIBRARY,
                bom_ref=f"python:{name}",
                description=metadata["Summary"],
                licenses=_licences(metadata["License-Expression"]),
                purl=PackageURL("pypi", None, distribution, metadata["Version"]),
                properties=[Property(name="path", value=f"/{PurePosixPath(name).parent}")],
            )
        )
    return components


def go_modules(archive: Archive, entries: dict[str, Entry]) -> list[Component]:
    """From the build information inside Go programs."""
    programs = {
        name
        for name, entry in entries.items()
        if entry.info.isfile() and entry.info.mode & 0o111 and PurePosixPath(name).parent.name == "bin"
    }
    modules = {
        module
        for content in archive.read(entries, programs).values()
        if GO_MARK in content
        for module in _modules_of(content)
    }
    return [
        Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"go:{name}@{version}",
            purl=PackageURL("golang", *_namespace(name), version),
        )
        for name, version in sorted(modules)
    ]


def parse_go_version(text: str) -> list[tuple[str, str]]:
    """Modules and versions in what `go version -m` prints; a replaced module is what replaced it."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        fields = line.strip().split("\t")
        if fields[0] in {"mod", "dep"} and len(fields) > 2:
            found.append((fields[1], fields[2]))
        elif fields[0] == "=>" and len(fields) > 2:
            found[-1] = (fields[1], fields[2])
    return [(name, version) for name, version in found if version and version != "(devel)"]


def _modules_of(program: bytes) -> list[tuple[str, str]]:
    go = shutil.which("go")
    if go is None:
        raise BuildFailed(
            "the bill of materials of a Go program is read by the go command, which is not here"
        )
    with tempfile.NamedTemporaryFile(prefix="noctaya-go-") as file:
        file.write(program)
        file.flush()
        done = subprocess.run([go, "version", "-m", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"go version can't read a program of the image: {done.stderr.strip()}")
    return parse_go_version(done.stdout)


def _namespace(module: str) -> tuple[str | None, str]:
    space, _, name = module.rpartition("/")
    return space or None, name


def _licences(expression: str | None) -> list[License]:
    return [LicenseFactory().make_from_string(expression)] if expression else []
