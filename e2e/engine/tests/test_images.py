"""The cache of built images, with a stand-in for the engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from noctaya_engine import images
from noctaya_engine.base import Base
from noctaya_engine.catalog import Image

BASES = {name: Base(name, Path(f"/{name}.tar"), f"noctaya/{name}:1") for name in ("build", "python")}


class Builder:
    """Counts builds; an image is its own name."""

    kind = "private"

    def __init__(self) -> None:
        self.built: list[str] = []
        self.arguments: dict[str, str] = {}

    def import_root(self, tar: Path, reference: str) -> None:
        """Nothing to import."""

    def build_context(
        self, context: Path, *, reference: str, build_args: dict[str, str], **_: object
    ) -> None:
        assert context.stat().st_size
        self.built.append(reference)
        self.arguments = build_args

    def save(self, reference: str, path: Path) -> None:
        path.write_text(reference)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    (root / "service").mkdir(parents=True)
    (root / "service/Dockerfile").write_text("FROM scratch")
    monkeypatch.setattr(images, "ROOT", root)
    monkeypatch.setattr(images, "images_folder", lambda: tmp_path / "images")
    monkeypatch.setattr(images, "ensure_bases", lambda **_: dict(BASES))
    image = Image("one", "noctaya/one:1", "service/Dockerfile", ("service",))
    monkeypatch.setattr(images, "find", lambda names: [image])
    return root


@pytest.fixture
def builder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    builder = Builder()

    class Engine:
        @staticmethod
        @contextmanager
        def running(**_: object) -> Iterator[Builder]:
            yield builder

    monkeypatch.setattr(images, "Engine", Engine)
    monkeypatch.setattr("noctaya_engine.sbom.write_sbom", lambda tar, target, **_: target.write_text("bill"))
    return builder


def silent(line: str) -> None:
    """No progress is looked at."""


def test_an_image_is_built_once_for_each_content(root: Path, builder: Builder) -> None:
    first = images.ensure("one", report=silent)["one"]
    assert images.ensure("one", report=silent)["one"] == first
    assert builder.built == ["noctaya/one:1"]
    (root / "service/module.py").write_text("changed")
    second = images.ensure("one", report=silent)["one"]
    assert second.key != first.key
    assert len(builder.built) == 2
    assert first.tar.exists(), "somebody may be loading it"


def test_nothing_is_started_when_all_is_there(
    root: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.ensure("one", report=silent)
    monkeypatch.delattr(images, "Engine")
    assert images.ensure("one", report=silent)["one"].tar.read_text() == "noctaya/one:1"


def test_a_build_that_was_interrupted_is_done_again(root: Path, builder: Builder) -> None:
    images.ensure("one", report=silent)["one"].sbom.unlink()
    assert images.ensure("one", report=silent)["one"].sbom.read_text() == "bill"
    assert len(builder.built) == 2


def test_only_the_newest_builds_are_kept(root: Path, builder: Builder) -> None:
    tars = []
    for number in range(4):
        (root / "service/module.py").write_text(str(number))
        tars.append(images.ensure("one", report=silent)["one"].tar)
        os.utime(tars[-1], (number, number))
    (root / "service/module.py").write_text("last")
    tars.append(images.ensure("one", report=silent)["one"].tar)
    assert [tar.exists() for tar in tars] == [False, False, False, True, True]


def test_a_build_gets_its_base_and_its_labels(root: Path, builder: Builder) -> None:
    images.ensure("one", report=silent)
    assert builder.arguments["PYTHON_IMAGE"] == "noctaya/python:1"
    assert builder.arguments["BUILD_IMAGE"] == "noctaya/build:1"
    assert builder.arguments["REVISION"] == "unknown"


def test_saved_files_have_plain_names_and_replace_older_ones(
    root: Path, builder: Builder, tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    for text in ("1", "2"):
        (root / "service/module.py").write_text(text)
        built = images.ensure("one", report=silent)["one"]
        assert images.save(built, folder) == folder / "one.tar"
        assert images.save(built, folder) == folder / "one.tar"
    assert (folder / "one.tar").samefile(built.tar)
    assert sorted(file.name for file in folder.iterdir()) == ["one.cdx.json", "one.tar"]
