"""Images written without Docker."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from noctaya_cluster.archive import StaticImage, write_image
from noctaya_cluster.host.images import ensure_archives, own_images

CONTENT = b"\x7fELF a program" * 1000


@pytest.fixture
def image(tmp_path: Path) -> StaticImage:
    program = tmp_path / "program"
    program.write_bytes(CONTENT)
    return StaticImage("example.com/keda:1", program, "/keda", links={"/bin/keda": "/keda"})


def read(archive: Path) -> tuple[Any, Any, tarfile.TarFile]:
    """Manifest, configuration and layer; every name is checked against what it names."""
    with tarfile.open(archive) as outer:
        content = {member.name: outer.extractfile(member) for member in outer.getmembers()}
        data = {name: file.read() for name, file in content.items() if file is not None}
    (manifest,) = json.loads(data["manifest.json"])
    (layer,) = manifest["Layers"]
    assert manifest["Config"] == f"{hashlib.sha256(data[manifest['Config']]).hexdigest()}.json"
    assert layer == f"{hashlib.sha256(data[layer]).hexdigest()}.tar"
    config = json.loads(data[manifest["Config"]])
    return manifest, config, tarfile.open(fileobj=io.BytesIO(data[layer]))


def test_the_program_is_where_it_belongs_and_can_be_run(image: StaticImage, tmp_path: Path) -> None:
    write_image(image, tmp_path / "image.tar")

    manifest, config, layer = read(tmp_path / "image.tar")
    assert manifest["RepoTags"] == ["example.com/keda:1"]
    program = layer.getmember("keda")
    assert program.mode == 0o755
    assert layer.extractfile(program).read() == CONTENT  # type: ignore[union-attr]
    assert layer.getmember("bin/keda").linkname == "/keda"
    assert layer.getmember("tmp").mode == 0o1777
    assert config["config"]["Entrypoint"] == ["/keda"]


def test_the_user_is_a_number(image: StaticImage, tmp_path: Path) -> None:
    """`runAsNonRoot` can't be checked for a name, and an empty root has no names."""
    write_image(image, tmp_path / "image.tar")

    _, config, _ = read(tmp_path / "image.tar")
    assert config["config"]["User"] == "1000"


def test_the_configuration_names_its_layer_by_content(image: StaticImage, tmp_path: Path) -> None:
    write_image(image, tmp_path / "image.tar")

    manifest, config, _ = read(tmp_path / "image.tar")
    assert [f"sha256:{Path(name).stem}" for name in manifest["Layers"]] == config["rootfs"]["diff_ids"]


def test_the_same_program_gives_the_same_bytes(image: StaticImage, tmp_path: Path) -> None:
    for name in ("one.tar", "two.tar"):
        write_image(image, tmp_path / name)

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_a_failed_write_leaves_nothing(image: StaticImage, tmp_path: Path) -> None:
    image.program.unlink()

    with pytest.raises(FileNotFoundError):
        write_image(image, tmp_path / "image.tar")
    assert list(tmp_path.iterdir()) == []


def test_archives_are_written_once_for_each_program(image: StaticImage, tmp_path: Path) -> None:
    (first,) = ensure_archives([image], tmp_path / "cache")
    written = first.stat().st_mtime_ns
    (second,) = ensure_archives([image], tmp_path / "cache")
    assert (second, second.stat().st_mtime_ns) == (first, written)

    image.program.write_bytes(CONTENT + b"!")
    (third,) = ensure_archives([image], tmp_path / "cache")
    assert third != first


def test_every_image_of_the_cluster_itself_runs_without_root_but_dns(tmp_path: Path) -> None:
    names = ("pause", "coredns", "keda-operator", "keda-adapter", "keda-webhooks")
    images = own_images({name: tmp_path / name for name in names})

    users = {image.reference.rpartition("/")[2].partition(":")[0]: image.user for image in images}
    assert users.pop("coredns") == "0"  # with all capabilities dropped but the one for port 53
    assert "0" not in users.values()
