"""Images as files: built once for each content, kept with what is known of them.

`ensure` answers from the cache without any engine when nothing has changed: the key of an image is the
hash of everything its build gets (sources, pins, base, labels). The private engine's layers make what did
change quick.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import noctaya_parts
from noctaya_parts.locking import locked

from noctaya_engine import base_by_docker
from noctaya_engine.base import BUILD, Base, ensure_bases
from noctaya_engine.catalog import VERSION, Image, find
from noctaya_engine.context import collect, write_tar
from noctaya_engine.engine import Engine, Kind, choose_kind
from noctaya_engine.package_index import machine_settings
from noctaya_engine.places import ROOT, images_folder
from noctaya_engine.revision import revision_of

Report = Callable[[str], None]

KEPT: Final = 2
"""Builds of an image that stay in the cache: the newest, and the one that somebody may be loading."""


@dataclass(frozen=True)
class Built:
    """An image as files.

    Attributes:
        name: in the catalog.
        reference: full name with tag, as it is in the tar.
        key: of its content; the same key is the same image.
        tar: docker-archive, for `docker load` or `ctr images import`.
        sbom: CycloneDX JSON.
    """

    name: str
    reference: str
    key: str
    tar: Path
    sbom: Path


@dataclass(frozen=True)
class _Plan:
    image: Image
    key: str
    context: Path
    build_args: Mapping[str, str]


def ensure(*names: str, report: Report = print, kind: Kind | None = None) -> dict[str, Built]:
    """The images of these names (all when none is given), built when they are not in the cache.

    Raises:
        UnknownImage, BuildFailed, EngineUnavailable: the message says what to do.
    """
    images = find(names)
    kind = kind or choose_kind()
    bases = ensure_bases(report=report) if kind == "private" else {}
    folder = images_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="noctaya-context-") as work:
        plans = [_plan(image, bases, kind, Path(work), report) for image in images]
        if all(_cached(plan, folder) for plan in plans):
            return {plan.image.name: _built(plan, folder) for plan in plans}
        with (
            locked(folder / ".lock", waiting=lambda: report("images are being built, waiting")),
            Engine.running(kind=kind, report=report) as engine,
        ):
            for plan in plans:
                if not _cached(plan, folder):
                    _build(engine, plan, bases, folder, report)
        return {plan.image.name: _built(plan, folder) for plan in plans}


def save(built: Built, folder: Path) -> Path:
    """Put the tar and the SBOM as `<name>.tar` and `<name>.cdx.json` into a folder; returns the tar."""
    folder.mkdir(parents=True, exist_ok=True)
    for source, target in (
        (built.tar, folder / f"{built.name}.tar"),
        (built.sbom, folder / f"{built.name}.cdx.json"),
    ):
        if target.exists() and source.samefile(target):
            continue
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        partial.unlink(missing_ok=True)
        try:
            partial.hardlink_to(source)
        except OSError:  # another file system
            shutil.copyfile(source, partial)
        partial.replace(target)
    return folder / f"{built.name}.tar"


def build_args(image: Image, references: Mapping[str, str]) -> dict[str, str]:
    """Labels and, by their references, base images for a build."""
    revision = revision_of(ROOT, image.inputs)
    labels = {"VERSION": VERSION, "REVISION": revision.commit, "CREATED": revision.created}
    if image.base is None:
        return labels
    return {"PYTHON_IMAGE": references[image.base], "BUILD_IMAGE": references[BUILD], **labels}


def _plan(image: Image, bases: Mapping[str, Base], kind: Kind, work: Path, report: Report) -> _Plan:
    parts = noctaya_parts.ensure(*image.parts, report=report) if image.parts else {}
    context = work / f"{image.name}.tar"
    content = write_tar(collect(ROOT, image.inputs, parts), context)
    if kind == "private":
        references = {name: base.reference for name, base in bases.items()}
    else:
        references = base_by_docker.references()
    arguments = build_args(image, references)
    facts = json.dumps([content, image.reference, image.dockerfile, kind, arguments], sort_keys=True)
    return _Plan(image, hashlib.sha256(facts.encode()).hexdigest(), context, arguments)


def _stem(plan: _Plan, folder: Path) -> Path:
    return folder / f"{plan.image.name}-{plan.key[:12]}"


def _built(plan: _Plan, folder: Path) -> Built:
    stem = _stem(plan, folder)
    return Built(
        name=plan.image.name,
        reference=plan.image.reference,
        key=plan.key,
        tar=stem.with_name(f"{stem.name}.tar"),
        sbom=stem.with_name(f"{stem.name}.cdx.json"),
    )


def _cached(plan: _Plan, folder: Path) -> bool:
    built = _built(plan, folder)
    return built.tar.exists() and built.sbom.exists()


def _build(engine: Engine, plan: _Plan, bases: Mapping[str, Base], folder: Path, report: Report) -> None:
    from noctaya_engine.sbom import write_sbom  # noqa: PLC0415  a second of imports that only a build needs

    started = time.monotonic()
    image = plan.image
    report(f"{image.name}: building {image.reference}")
    if image.base is not None:
        _provide_bases(engine, (BUILD, image.base), bases)
    index = machine_settings()
    engine.build_context(
        plan.context,
        dockerfile=image.dockerfile,
        reference=image.reference,
        build_args={**plan.build_args, **index.build_args},
        secrets=index.secrets,
    )
    built = _built(plan, folder)
    engine.save(image.reference, built.tar)
    write_sbom(built.tar, built.sbom, reference=image.reference, version=VERSION)
    _forget_old(image.name, folder)
    size = built.tar.stat().st_size / 1e6
    report(f"{image.name}: done in {time.monotonic() - started:.0f} s, {size:.0f} MB")


def _provide_bases(engine: Engine, names: tuple[str, ...], bases: Mapping[str, Base]) -> None:
    if engine.kind == "system":
        base_by_docker.build_bases(engine)
        return
    for name in names:
        engine.import_root(bases[name].tar, bases[name].reference)


def _forget_old(name: str, folder: Path) -> None:
    tars = sorted(
        folder.glob(f"{name}-{'[0-9a-f]' * 12}.tar"), key=lambda tar: tar.stat().st_mtime, reverse=True
    )
    for tar in tars[KEPT:]:
        tar.with_suffix(".cdx.json").unlink(missing_ok=True)
        tar.unlink()


def about(built: Built) -> dict[str, str]:
    """For machines: one row of `python -m noctaya_engine build --json`."""
    return {name: str(value) for name, value in asdict(built).items()}
