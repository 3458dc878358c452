"""Both ways to base images lead to the same roots."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from noctaya_engine import Engine
from noctaya_engine.archive import opened
from noctaya_engine.base import BUILD, RECIPES, ensure_bases
from noctaya_engine.base_by_docker import build_bases, references

pytestmark = pytest.mark.private_engine

MADE_BY_ENGINES = {"etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab", ".dockerenv"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_dockerfile_on_a_debian_image_gives_what_debootstrap_gives(
    name: str, bare_engine: Engine, tmp_path: Path
) -> None:
    bases = ensure_bases()
    bare_engine.import_root(bases[BUILD].tar, bases[BUILD].reference)
    build_bases(bare_engine, debian=bases[BUILD].reference)
    saved = tmp_path / "base.tar"
    bare_engine.save(references()[name], saved)
    with opened(saved) as archive:
        by_docker = {path: entry.info.mode & 0o7777 for path, entry in archive.files().items()}
    with tarfile.open(bases[name].tar) as tar:
        by_debootstrap = {
            info.name.removeprefix("./"): info.mode & 0o7777 for info in tar if info.name != "."
        }
    assert len(by_debootstrap) > 1000
    assert {
        path: (by_debootstrap.get(path), by_docker.get(path))
        for path in by_debootstrap.keys() ^ by_docker.keys() - MADE_BY_ENGINES
    } == {}
    assert {path for path, mode in by_debootstrap.items() if by_docker[path] != mode} == set()
