"""Staging: what was pulled becomes a model that the marker vouches for, once (M1, M5)."""

import json
import logging
import os
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from noctaya_prewarm.errors import BadSettings, Busy, Interrupted, NoSpace, PrewarmError
from noctaya_prewarm.lease import hold
from noctaya_prewarm.progress import State
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.stage import stage
from noctaya_prewarm.verify import verify
from oci_artifacts import (
    LAYER_GZIP,
    REPOSITORY,
    LayoutWriter,
    Member,
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

FILES = {
    "config.json": b"{}\n",
    "model-00001.safetensors": os.urandom(3_000_000),
    "empty": b"",
    "sub/a.txt": b"a",
}


class Stager:
    """Calls `stage` as the Job does."""

    def __init__(self, layout: LayoutWriter, cache: Path, new_run: Callable[[], Run]) -> None:
        self._layout, self._cache, self._new_run = layout, cache, new_run
        self.run = new_run()

    def __call__(self, digest: str, **options: Any) -> Path:
        self.run = self._new_run()
        target = self._cache / f"sha256-{digest}"
        given = {
            "layout": self._layout.root,
            "source": source_of(digest),
            "target": str(target),
            "marker": str(target / ".noctaya-ready"),
            "prune": False,
        }
        stage(**{**given, **options}, run=self.run)
        return target


@pytest.fixture
def stager(layout: LayoutWriter, cache: Path, new_run: Callable[[], Run]) -> Stager:
    return Stager(layout, cache, new_run)


def unchanging(target: Path) -> dict[Path, tuple[int, int, int]]:
    """Everything below a directory with what a write would change."""
    states = {path: path.stat() for path in [target, *target.rglob("*")]}
    return {path: (state.st_ino, state.st_mtime_ns, state.st_size) for path, state in states.items()}


def marker_of(target: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((target / ".noctaya-ready").read_text())
    return found


def test_m5_files_are_staged_and_vouched_for(
    layout: LayoutWriter, stager: Stager, run: Run, cache: Path
) -> None:
    digest = layout.files(FILES)
    target = stager(digest)
    assert tree_of(target) == FILES
    marker = marker_of(target)
    assert marker["source"] == source_of(digest)
    assert marker["revision"] == f"sha256:{digest}"
    assert {one["path"]: (one["size"], one["sha256"]) for one in marker["files"]} == {
        path: (len(content), sha256(content)) for path, content in FILES.items()
    }
    assert marker["bytes"] == sum(map(len, FILES.values()))
    verify(run, marker=target / ".noctaya-ready", deep=True)
    assert [path.name for path in cache.iterdir()] == [target.name]
    assert stager.run.digest == f"sha256:{digest}"
    done = stager.run.progress.snapshot()
    assert done.bytesDone == done.bytesTotal == sum(map(len, FILES.values()))


def test_a_packed_directory_beside_plain_files(layout: LayoutWriter, stager: Stager, run: Run) -> None:
    members: list[Member] = [
        special("tok", tarfile.DIRTYPE),
        ("tok/vocab.txt", b"v" * 70_000),
        ("tok/deep/x", b"x"),
    ]
    blob, layer = unpacked_layer(tar_of(members), "tok")
    for content in (blob, b"{}"):
        layout.blob(content)
    target = stager(layout.manifest(manifest_of([titled(b"{}", "config.json"), layer])))
    assert tree_of(target) == {"config.json": b"{}", "tok/vocab.txt": b"v" * 70_000, "tok/deep/x": b"x"}
    verify(run, marker=target / ".noctaya-ready", deep=True)


def test_layers_of_an_image_lie_side_by_side(layout: LayoutWriter, stager: Stager) -> None:
    digest = layout.archives(tar_of([("models/a", b"1"), ("models/b", b"2")]), tar_of([("models/c", b"3")]))
    assert tree_of(stager(digest)) == {"models/a": b"1", "models/b": b"2", "models/c": b"3"}


def test_a_second_run_changes_nothing(layout: LayoutWriter, stager: Stager) -> None:
    target = stager(layout.files(FILES))
    before = unchanging(target)
    for blob in (layout.root / "blobs" / "sha256").iterdir():
        blob.unlink()
    assert stager(target.name.removeprefix("sha256-")) == target
    assert unchanging(target) == before


def test_m1_a_file_that_changed_since_is_staged_again(layout: LayoutWriter, stager: Stager) -> None:
    digest = layout.files(FILES)
    target = stager(digest)
    (target / "config.json").write_bytes(b"[]\n")
    (target / "stray").write_bytes(b"x")
    assert tree_of(stager(digest)) == FILES


@pytest.mark.parametrize("marker", [b"{", b"[]", b'{"version":9}', b"x" * 100])
def test_a_marker_that_cannot_be_read_is_not_believed(
    layout: LayoutWriter, stager: Stager, marker: bytes
) -> None:
    digest = layout.files(FILES)
    target = stager(digest)
    (target / ".noctaya-ready").write_bytes(marker)
    (target / "config.json").write_bytes(b"[]")
    assert tree_of(stager(digest)) == FILES
    assert marker_of(target)["version"] == 1


def test_a_target_of_another_name_is_repaired_too(layout: LayoutWriter, stager: Stager, cache: Path) -> None:
    digest = layout.files(FILES)
    place = {"target": str(cache / "mine"), "marker": str(cache / "mine" / ".noctaya-ready")}
    stager(digest, **place)
    (cache / "mine" / "config.json").write_bytes(b"[]\n")
    stager(digest, **place)
    assert tree_of(cache / "mine") == FILES


def test_a_directory_of_somebody_else_is_not_touched(
    layout: LayoutWriter, stager: Stager, cache: Path
) -> None:
    (cache / "mine").mkdir()
    (cache / "mine" / "thesis.txt").write_bytes(b"years")
    with pytest.raises(BadSettings, match="not made by this agent"):
        stager(layout.files(FILES), target=str(cache / "mine"), marker=str(cache / "mine" / "m"))
    assert tree_of(cache) == {"mine/thesis.txt": b"years"}


def test_what_the_alpha_staged_is_adopted_where_it_lies(
    layout: LayoutWriter, stager: Stager, run: Run
) -> None:
    digest = layout.files(FILES)
    target = stager(digest)
    (target / ".noctaya-ready").write_bytes(b"")
    inodes = {path: path.stat().st_ino for path in target.rglob("*") if path.name != ".noctaya-ready"}
    folder = target.stat().st_ino
    stager(digest)
    assert target.stat().st_ino == folder
    assert {path: path.stat().st_ino for path in inodes} == inodes
    verify(run, marker=target / ".noctaya-ready", deep=True)


def test_what_the_alpha_staged_wrongly_is_staged_again(layout: LayoutWriter, stager: Stager) -> None:
    digest = layout.files(FILES)
    target = stager(digest)
    (target / ".noctaya-ready").write_bytes(b"")
    (target / "config.json").write_bytes(b"??\n")
    assert tree_of(stager(digest)) == FILES


def test_a_tag_becomes_the_digest_that_was_pulled(layout: LayoutWriter, stager: Stager, cache: Path) -> None:
    digest = layout.files(FILES)
    places = {"target": f"{cache}/sha256-{{digest}}", "marker": f"{cache}/sha256-{{digest}}/.noctaya-ready"}
    target = stager(digest, source=f"oci://{REPOSITORY}:v1", **places)
    assert tree_of(target) == FILES
    assert marker_of(target)["source"] == source_of(digest)
    assert stager.run.digest == f"sha256:{digest}"
    before = unchanging(target)
    stager(digest)
    assert unchanging(target) == before


def test_a_tag_needs_a_target_of_its_own(layout: LayoutWriter, stager: Stager) -> None:
    with pytest.raises(BadSettings, match=r"\{digest\}"):
        stager(layout.files(FILES), source=f"oci://{REPOSITORY}:v1")


@pytest.mark.parametrize("target", ["relative", "/cache/../etc"])
def test_a_target_is_an_absolute_path(layout: LayoutWriter, stager: Stager, target: str) -> None:
    with pytest.raises(BadSettings, match="absolute"):
        stager(layout.files(FILES), target=target)


@pytest.mark.parametrize("source", ["hf://org/name", "oci://reg/UPPER@sha256:x", "nothing"])
def test_a_source_that_is_no_artifact_is_an_error(layout: LayoutWriter, stager: Stager, source: str) -> None:
    with pytest.raises(BadSettings):
        stager(layout.files(FILES), source=source)


def test_prune_removes_other_models_and_keeps_this_one(
    layout: LayoutWriter, stager: Stager, cache: Path
) -> None:
    other = cache / f"sha256-{'a' * 64}"
    other.mkdir()
    (other / "old").write_bytes(b"x")
    (cache / "somebody-elses").mkdir()
    digest = layout.files(FILES)
    stager(digest)
    assert other.exists()
    stager(digest, prune=True)
    assert sorted(path.name for path in cache.iterdir()) == [f"sha256-{digest}", "somebody-elses"]


def test_no_room_is_told_before_anything_is_written(
    layout: LayoutWriter, stager: Stager, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = layout.files(FILES)
    monkeypatch.setattr("noctaya_prewarm.disk.free_bytes", lambda path: 1_000_000)
    with pytest.raises(NoSpace, match="make the cache larger"):
        stager(digest)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_cache_that_cannot_be_written_is_an_error(
    layout: LayoutWriter, stager: Stager, cache: Path
) -> None:
    digest = layout.files(FILES)
    blocked = cache / "file"
    blocked.write_bytes(b"")
    with pytest.raises(PrewarmError, match="file"):
        stager(digest, target=f"{blocked}/sha256-{digest}", marker=f"{blocked}/sha256-{digest}/m")


def test_a_run_that_is_stopped_leaves_no_marker_and_goes_on_later(
    layout: LayoutWriter, cache: Path, new_run: Callable[[], Run], stager: Stager
) -> None:
    digest = layout.files({f"f{number}": os.urandom(100_000) for number in range(20)})
    run = new_run()
    add = run.progress.add

    def stop_halfway(count: int, name: str = "") -> None:
        add(count)
        if run.progress.snapshot().bytesDone > 1_000_000:
            run.abort(Interrupted("stopped"))

    run.progress.add = stop_halfway  # type: ignore[method-assign]
    target = cache / f"sha256-{digest}"
    with pytest.raises(Interrupted):
        stage(
            layout=layout.root,
            source=source_of(digest),
            target=str(target),
            marker=str(target / ".noctaya-ready"),
            prune=False,
            run=run,
        )
    assert not target.exists()
    stager(digest)
    assert len(tree_of(target)) == 20
    assert stager.run.progress.moved == 900_000, "what was there already is not copied again"


def test_two_agents_at_once_stage_it_once(
    layout: LayoutWriter,
    cache: Path,
    new_run: Callable[[], Run],
    run: Run,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    digest = layout.files(FILES)
    runs = [new_run() for _ in range(3)]
    target = cache / f"sha256-{digest}"
    errors: list[BaseException] = []

    def work(one: Run) -> None:
        try:
            stage(
                layout=layout.root,
                source=source_of(digest),
                target=str(target),
                marker=str(target / ".noctaya-ready"),
                prune=False,
                run=one,
            )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert tree_of(target) == FILES
    verify(run, marker=target / ".noctaya-ready", deep=True)
    assert [record.message for record in caplog.records].count("staged") == 1
    assert [path.name for path in cache.iterdir()] == [target.name]


def test_a_target_that_another_agent_keeps_is_busy_at_the_deadline(
    layout: LayoutWriter, cache: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = layout.files(FILES)
    target = cache / f"sha256-{digest}"
    monkeypatch.setenv("NOCTAYA_PREWARM_DEADLINE", "1s")
    waiting = Run(AgentSettings())
    with hold(run, target), pytest.raises(Busy, match="another agent"):
        stage(
            layout=layout.root,
            source=source_of(digest),
            target=str(target),
            marker=str(target / "m"),
            prune=False,
            run=waiting,
        )
    assert waiting.progress.state is State.WAITING


def test_a_partial_directory_of_somebody_else_is_no_help_to_him(
    layout: LayoutWriter, stager: Stager, cache: Path
) -> None:
    digest = layout.files(FILES)
    partial = cache / f"sha256-{digest}.partial"
    (partial / "sub").mkdir(parents=True)
    outside = cache.parent / "outside"
    outside.write_bytes(b"mine")
    (partial / "config.json").symlink_to(outside)
    (partial / "stray").write_bytes(b"not of the artifact")
    (partial / "model-00001.safetensors").write_bytes(bytes(3_000_000))
    assert tree_of(stager(digest)) == FILES
    assert outside.read_bytes() == b"mine"


def test_an_archive_that_was_half_unpacked_is_unpacked_again(
    layout: LayoutWriter, stager: Stager, cache: Path
) -> None:
    digest = layout.archives(tar_of([("a", b"1" * 1000), ("b", b"2")]))
    partial = cache / f"sha256-{digest}.partial"
    partial.mkdir()
    (partial / "a").write_bytes(b"1" * 1000)
    (partial / "b").write_bytes(b"old")
    assert tree_of(stager(digest)) == {"a": b"1" * 1000, "b": b"2"}


def test_one_blob_may_be_two_files(layout: LayoutWriter, stager: Stager) -> None:
    layout.blob(b"same")
    digest = layout.manifest(manifest_of([titled(b"same", "one"), titled(b"same", "two")]))
    assert tree_of(stager(digest)) == {"one": b"same", "two": b"same"}


def test_the_digest_of_an_uncompressed_archive_is_checked_when_it_is_told(
    layout: LayoutWriter, stager: Stager
) -> None:
    blob, layer = unpacked_layer(tar_of([("d/a", b"x")]), "d")
    layout.blob(blob)
    layer["annotations"]["io.deis.oras.content.digest"] = f"sha256:{'0' * 64}"
    with pytest.raises(PrewarmError, match="the unpacked layer 1"):
        stager(layout.manifest(manifest_of([layer])))


def test_archives_without_a_file_are_refused(layout: LayoutWriter, stager: Stager) -> None:
    blob = packed(tar_of([special("only-a-folder", tarfile.DIRTYPE)]))
    layout.blob(blob)
    with pytest.raises(PrewarmError, match="hold no file"):
        stager(layout.manifest(manifest_of([descriptor(blob, media_type=LAYER_GZIP)])))
