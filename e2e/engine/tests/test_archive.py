"""Reading images out of docker-archive tars that are made here, layer by layer."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from noctaya_engine.archive import opened
from noctaya_engine.errors import EngineError
from noctaya_engine.sizes import Sizes, measure

Layer = Mapping[str, bytes]
Make = Callable[..., Path]


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def archive(*layers: Layer) -> Path:
        target = tmp_path / "image.tar"
        names = [f"{number}/layer.tar" for number in range(len(layers))]
        config = json.dumps({"config": {"Labels": {"a": "b"}}}).encode()
        manifest = [{"Config": "config.json", "RepoTags": ["one:1"], "Layers": names}]
        with tarfile.open(target, "w") as tar:
            add(tar, "config.json", config)
            for name, files in zip(names, layers, strict=True):
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w") as layer:
                    for file, content in files.items():
                        add(layer, file, content)
                add(tar, name, packed.getvalue())
            add(tar, "manifest.json", json.dumps(manifest).encode())
        return target

    return archive


def contents(path: Path) -> dict[str, bytes]:
    with opened(path) as archive:
        entries = archive.files()
        return archive.read(entries, set(entries))


def test_upper_layers_cover_lower_ones(make: Make) -> None:
    path = make({"a": b"lower", "./b": b"lower"}, {"a": b"upper"})
    assert contents(path) == {"a": b"upper", "b": b"lower"}


def test_deleted_files_and_folders_are_gone(make: Make) -> None:
    path = make({"a": b"", "dir/b": b"", "dir/sub/c": b"", "directory": b""}, {".wh.a": b"", ".wh.dir": b""})
    assert contents(path).keys() == {"directory"}


def test_a_file_that_comes_back_is_there(make: Make) -> None:
    assert contents(make({"a": b"1"}, {".wh.a": b""}, {"a": b"2"})) == {"a": b"2"}


def test_an_opaque_folder_hides_what_is_below_it_and_keeps_its_own(make: Make) -> None:
    path = make({"dir/a": b"lower", "e": b""}, {"dir/b": b"upper", "dir/.wh..wh..opq": b""})
    assert contents(path) == {"dir/b": b"upper", "e": b""}


def test_it_tells_name_labels_and_identity(make: Make) -> None:
    with opened(make({})) as archive:
        assert archive.references == ["one:1"]
        assert archive.labels == {"a": "b"}
        assert archive.identity == hashlib.sha256(b'{"config": {"Labels": {"a": "b"}}}').hexdigest()


def test_another_tar_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        add(tar, "file", b"")
    with pytest.raises(EngineError, match=r"other\.tar is no docker-archive"), opened(tmp_path / "other.tar"):
        pass


def test_sizes_are_those_of_the_layers(make: Make) -> None:
    sizes = measure(make({"zeros": bytes(3_000_000)}, {"more": bytes(1_000_000)}))
    assert 4_000_000 < sizes.unpacked < 4_100_000
    assert sizes.compressed < 20_000
    assert str(Sizes(12_400_000, 56_700_000)) == "12 MB compressed, 57 MB unpacked"
