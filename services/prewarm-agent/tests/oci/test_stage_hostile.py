"""Hostile artifacts and damaged pulls: an error that names the fault, no marker, nothing outside (M4, M5)."""

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from noctaya_prewarm.errors import IntegrityFault, NotFound, PrewarmError, Refused
from noctaya_prewarm.run import Run
from noctaya_prewarm.stage import stage
from oci_artifacts import (
    INDEX,
    LAYER_GZIP,
    REPOSITORY,
    LayoutWriter,
    descriptor,
    manifest_of,
    packed,
    sha256,
    source_of,
    special,
    tar_of,
    titled,
    tree_of,
    unpacked_layer,
)

WEIGHTS = os.urandom(200_000)
Attempt = Callable[..., str]


@pytest.fixture
def attempt(layout: LayoutWriter, cache: Path, tmp_path: Path, new_run: Callable[[], Run]) -> Attempt:
    """Stage something that must fail; afterwards nothing may vouch for it. Gives the message."""
    (tmp_path / "secret").write_text("outside")
    around = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if cache not in path.parents}

    def run_it(digest: str, expected: type[PrewarmError], *, source: str = "") -> str:
        target = cache / f"sha256-{digest}"
        inside = layout.root / "blobs"
        before = {path: path.lstat().st_mtime_ns for path in inside.rglob("*")}
        with pytest.raises(expected) as caught:
            stage(
                layout=layout.root,
                source=source or source_of(digest),
                target=str(target) if not source else str(cache / "sha256-{digest}"),
                marker=str((target if not source else cache / "sha256-{digest}") / ".noctaya-ready"),
                prune=False,
                run=new_run(),
            )
        assert type(caught.value) is expected
        assert not target.exists()
        assert not list(cache.rglob(".noctaya-ready*"))
        assert not [path for path in cache.rglob("*") if path.is_symlink()]
        if expected is Refused:
            assert not [path for path in cache.rglob("*") if path.is_file()], "what is refused takes no room"
        assert {path: path.lstat().st_mtime_ns for path in inside.rglob("*")} == before
        for path, mtime in around.items():
            if layout.root not in (path, *path.parents) and path != cache:
                assert path.lstat().st_mtime_ns == mtime
        assert str(caught.value).isprintable()
        return str(caught.value)

    return run_it


def one_file(layout: LayoutWriter, content: bytes = WEIGHTS) -> tuple[str, Path]:
    path = layout.blob(content)
    return layout.manifest(manifest_of([titled(content, "model.safetensors")])), path


def test_wrong_bytes(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, blob = one_file(layout)
    changed = bytearray(WEIGHTS)
    changed[100_000] ^= 1
    blob.write_bytes(changed)
    assert "layer 1 ('model.safetensors') has the digest" in attempt(digest, IntegrityFault)


def test_a_fault_is_healed_by_the_next_pull(
    layout: LayoutWriter, attempt: Attempt, cache: Path, run: Run
) -> None:
    digest, blob = one_file(layout)
    blob.write_bytes(bytes(len(WEIGHTS)))
    attempt(digest, IntegrityFault)
    blob.write_bytes(WEIGHTS)
    target = cache / f"sha256-{digest}"
    stage(
        layout=layout.root,
        source=source_of(digest),
        target=str(target),
        marker=str(target / ".noctaya-ready"),
        prune=False,
        run=run,
    )
    assert tree_of(target) == {"model.safetensors": WEIGHTS}


@pytest.mark.parametrize("length", [0, 1, 199_999, 200_001])
def test_truncated_or_longer(layout: LayoutWriter, attempt: Attempt, length: int) -> None:
    digest, blob = one_file(layout)
    blob.write_bytes((WEIGHTS + b"x")[:length])
    assert f"has {length} bytes, not the 200000" in attempt(digest, IntegrityFault)


def test_a_missing_layer(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, blob = one_file(layout)
    blob.unlink()
    assert "layer 1 ('model.safetensors') is missing" in attempt(digest, IntegrityFault)


def test_a_missing_manifest(layout: LayoutWriter, attempt: Attempt) -> None:
    one_file(layout)
    assert "the manifest sha256:" in attempt("a" * 64, IntegrityFault)


def test_another_manifest_under_the_digest(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, _ = one_file(layout)
    layout.blob(manifest_of([titled(b"evil", "model.safetensors")]), name=digest)
    assert "the pulled manifest has the digest" in attempt(digest, IntegrityFault)


def test_a_manifest_that_differs_by_a_space(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, _ = one_file(layout)
    path = layout.root / "blobs" / "sha256" / digest
    path.write_bytes(path.read_bytes() + b" ")
    attempt(digest, IntegrityFault)


def test_a_manifest_without_end(layout: LayoutWriter, attempt: Attempt) -> None:
    content = b" " * ((4 << 20) + 1)
    digest = layout.manifest(content)
    assert "more than 4194304 bytes" in attempt(digest, IntegrityFault)


def test_an_index_for_a_manifest(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, _ = one_file(layout)
    entry = {"mediaType": "x", "digest": f"sha256:{digest}", "size": 5}
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode()
    found = attempt(layout.manifest(index, media_type=INDEX), Refused)
    assert f"pin one of them: sha256:{digest}" in found


@pytest.mark.parametrize("algorithm", ["sha512", "md5"])
def test_another_algorithm(layout: LayoutWriter, attempt: Attempt, algorithm: str) -> None:
    layer = titled(WEIGHTS, "a") | {"digest": f"{algorithm}:{'a' * 64}"}
    assert algorithm in attempt(layout.manifest(manifest_of([layer])), Refused)


@pytest.mark.parametrize(
    "title",
    [
        "/etc/cron.d/evil",
        "../../secret",
        "a/../../../secret",
        "..",
        ".",
        "a/./b",
        "a//b",
        "x" * 300,
        ".noctaya-ready",
        "a\\..\\b",
        "a\0b",
        "",
    ],
)
def test_titles(layout: LayoutWriter, attempt: Attempt, title: str) -> None:
    layout.blob(WEIGHTS)
    found = attempt(layout.manifest(manifest_of([titled(WEIGHTS, title)])), Refused)
    assert found.startswith("title of layer 1")
    assert len(found) < 400


def test_ten_thousand_layers(layout: LayoutWriter, attempt: Attempt) -> None:
    layout.blob(b"")
    layers = [titled(b"", f"file-{number}") for number in range(10_000)]
    assert "10000 layers" in attempt(layout.manifest(manifest_of(layers)), Refused)


def test_ten_thousand_files_in_an_archive(
    layout: LayoutWriter, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A lower limit, since what comes before it is written and synced.
    monkeypatch.setattr("noctaya_prewarm.unpacking.MAX_MEMBERS", 200)
    archive = tar_of((f"file-{number}", b"") for number in range(10_000))
    assert "more than 200 files" in attempt(layout.archives(archive), Refused)


def test_ten_thousand_directories_in_an_archive(layout: LayoutWriter, attempt: Attempt) -> None:
    archive = tar_of(special(f"folder-{number}", tarfile.DIRTYPE) for number in range(10_000))
    assert "more than 4096 files" in attempt(layout.archives(archive), Refused)


def test_a_bomb_of_many_layers(
    layout: LayoutWriter, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noctaya_prewarm.inflate.FREE_OUTPUT", 3 << 20)
    archives = [tar_of([(f"zeros-{number}", bytes(2 << 20))]) for number in range(3)]
    assert "so much" in attempt(layout.archives(*archives), Refused)


@pytest.mark.parametrize(
    "members",
    [
        [special("link", tarfile.SYMTYPE, linkname="/etc/passwd")],
        [special("link", tarfile.SYMTYPE, linkname="../../secret"), ("link", b"evil")],
        [special("dir", tarfile.SYMTYPE, linkname=".."), ("dir/secret", b"evil")],
        [("a", b"x"), special("hard", tarfile.LNKTYPE, linkname="a")],
        [special("hard", tarfile.LNKTYPE, linkname="/etc/passwd")],
        [special("null", tarfile.CHRTYPE)],
        [special("disk", tarfile.BLKTYPE)],
        [special("pipe", tarfile.FIFOTYPE)],
        [("/etc/cron.d/evil", b"x")],
        [("../../secret", b"evil")],
        [(".noctaya-ready", b"{}")],
        [("x" * 300, b"x")],
        [("a", b"1"), ("a", b"2")],
        [("a", b"1"), ("a/b", b"2")],
        [("a/b", b"1"), ("a", b"2")],
        [("a", b"1"), special("a", tarfile.DIRTYPE)],
        [special("a/b", tarfile.DIRTYPE), ("a", b"1")],
    ],
)
def test_archives(layout: LayoutWriter, attempt: Attempt, members: list[Any]) -> None:
    attempt(layout.archives(tar_of(members)), Refused)


def test_an_archive_that_leaves_its_directory(layout: LayoutWriter, attempt: Attempt) -> None:
    blob, layer = unpacked_layer(tar_of([("tok/a", b"x"), ("config.json", b"evil")]), "tok")
    for content in (blob, b"{}"):
        layout.blob(content)
    found = attempt(layout.manifest(manifest_of([titled(b"{}", "other"), layer])), Refused)
    assert "outside of its directory 'tok'" in found


def test_an_archive_over_a_file_of_another_layer(layout: LayoutWriter, attempt: Attempt) -> None:
    blob = packed(tar_of([("config.json", b"evil")]))
    for content in (blob, b"{}"):
        layout.blob(content)
    layers = [titled(b"{}", "config.json"), descriptor(blob, media_type=LAYER_GZIP)]
    assert "appears twice" in attempt(layout.manifest(manifest_of(layers)), Refused)


def test_an_archive_that_is_damaged_is_never_interpreted(layout: LayoutWriter, attempt: Attempt) -> None:
    good = packed(tar_of([("a", b"x")]))
    evil = packed(tar_of([("/etc/passwd", b"x")]))
    evil += bytes(max(0, len(good) - len(evil)))
    digest = layout.manifest(
        manifest_of([descriptor(good + bytes(len(evil) - len(good)), media_type=LAYER_GZIP)])
    )
    layout.blob(evil, name=sha256(good + bytes(len(evil) - len(good))))
    attempt(digest, IntegrityFault)


@pytest.mark.parametrize("content", [b"x" * 3000, b"\x1f\x8bx" * 500, b"PK\3\4" + bytes(3000)])
def test_a_layer_that_is_no_archive(layout: LayoutWriter, attempt: Attempt, content: bytes) -> None:
    layout.blob(content)
    layer = descriptor(content, media_type=LAYER_GZIP)
    assert "layer 1" in attempt(layout.manifest(manifest_of([layer])), Refused)


def test_a_blob_that_is_a_link(layout: LayoutWriter, attempt: Attempt, tmp_path: Path) -> None:
    digest, blob = one_file(layout)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(WEIGHTS)
    blob.unlink()
    blob.symlink_to(elsewhere)
    attempt(digest, Refused)


def test_a_blob_that_is_a_pipe_does_not_hang(layout: LayoutWriter, attempt: Attempt) -> None:
    digest, blob = one_file(layout)
    blob.unlink()
    os.mkfifo(blob)
    attempt(digest, Refused)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ({}, NotFound),
        ({"manifests": []}, NotFound),
        ({"manifests": [{"digest": f"sha256:{'a' * 64}"}, {"digest": f"sha256:{'b' * 64}"}]}, NotFound),
        ({"manifests": [{"digest": "sha512:" + "a" * 128}]}, Refused),
        ({"manifests": [{"digest": "../../../secret"}]}, Refused),
        ({"manifests": [{"digest": f"sha256:{'c' * 64}", "annotations": 5}]}, IntegrityFault),
    ],
)
def test_an_index_that_does_not_say_what_was_pulled(
    layout: LayoutWriter, attempt: Attempt, index: dict[str, Any], expected: type[PrewarmError]
) -> None:
    digest, _ = one_file(layout)
    (layout.root / "index.json").write_text(json.dumps(index))
    attempt(digest, expected, source=f"oci://{REPOSITORY}:v1")


def test_no_layout_at_all(layout: LayoutWriter, attempt: Attempt) -> None:
    (layout.root / "index.json").unlink()
    found = attempt("a" * 64, IntegrityFault, source=f"oci://{REPOSITORY}:v1")
    assert "the pull container did not end well" in found
