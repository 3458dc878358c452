"""How far a pull is, seen from beside it (M6)."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from noctaya_model_hub import Effect, Faults, Match
from noctaya_prewarm.errors import DeadlineExceeded, Interrupted
from noctaya_prewarm.pull_progress import arrived, follow_pull
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings
from oci_artifacts import LayoutWriter, manifest_of, sha256, titled
from registries import LyingRegistry, oras, pull, serve_beside

WEIGHTS, CONFIG = os.urandom(1_000_000), b"{}\n"
BLOBS = {sha256(WEIGHTS): len(WEIGHTS), sha256(CONFIG): len(CONFIG)}
MANIFEST = manifest_of([titled(CONFIG, "config.json"), titled(WEIGHTS, "model.safetensors")])
WITHIN = 60.0


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not look():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / "manifest.json"
    file.write_bytes(MANIFEST)
    return file


def test_whole_blobs_and_those_that_arrive_count_up_to_their_size(layout: LayoutWriter) -> None:
    ingest = layout.root / "ingest"
    ingest.mkdir()
    assert arrived(layout.root, BLOBS) == {}
    (ingest / f"{sha256(WEIGHTS)}_123").write_bytes(WEIGHTS[:4000])
    (ingest / f"{sha256(WEIGHTS)}_99").write_bytes(WEIGHTS[:300])
    assert arrived(layout.root, BLOBS) == {sha256(WEIGHTS): 4000}, "of two attempts the better one"
    layout.blob(CONFIG + b"more than announced", name=sha256(CONFIG))
    layout.blob(WEIGHTS)
    assert arrived(layout.root, BLOBS) == BLOBS


def test_what_is_no_blob_of_the_artifact_does_not_count(layout: LayoutWriter, tmp_path: Path) -> None:
    layout.blob(b"another")
    ingest = layout.root / "ingest"
    ingest.mkdir()
    (ingest / "short").write_bytes(b"x")
    (ingest / f"{sha256(WEIGHTS)}x").write_bytes(b"x")
    (tmp_path / "large").write_bytes(WEIGHTS)
    (ingest / f"{sha256(CONFIG)}_1").symlink_to(tmp_path / "large")
    assert sum(arrived(layout.root, {sha256(WEIGHTS): 10**9}).values()) == 0


def test_m6_what_oras_has_shows_while_it_pulls(tmp_path: Path) -> None:
    """The names that blobs have while they arrive are those of the real client."""
    blobs = {sha256(MANIFEST): MANIFEST, sha256(WEIGHTS): WEIGHTS, sha256(CONFIG): CONFIG}
    blobs[sha256(b"{}")] = b"{}"
    registry = LyingRegistry({f"sha256:{digest}": content for digest, content in blobs.items()})
    faults = Faults()
    slow = Match(route="blobs", path=f"sha256:{sha256(WEIGHTS)}")
    faults.add(slow, Effect(bytes_per_second=len(WEIGHTS) / 60))
    staging = tmp_path / "staging"
    with serve_beside(registry.answer, faults=faults) as host:
        reference = f"{host}/team/model@sha256:{sha256(MANIFEST)}"
        fetched = tmp_path / "manifest.json"
        for _ in ("at first", "after a restart"):
            done = oras("manifest", "fetch", "--plain-http", "--output", fetched, reference)
            assert (done.returncode, fetched.read_bytes()) == (0, MANIFEST), done.stderr
        pulled = threading.Thread(target=pull, args=(reference, staging))
        pulled.start()
        try:
            until(lambda: 0 < arrived(staging, BLOBS).get(sha256(WEIGHTS), 0) < len(WEIGHTS))
        finally:
            faults.clear()
            pulled.join(WITHIN)
    assert arrived(staging, BLOBS) == BLOBS


def test_m6_progress_is_told_and_a_stop_is_its_end(layout: LayoutWriter, manifest: Path, run: Run) -> None:
    following = threading.Thread(
        target=follow_pull, args=(run,), kwargs={"layout": layout.root, "manifest": manifest}
    )
    following.start()
    try:
        until(lambda: run.progress.snapshot().bytesTotal == sum(BLOBS.values()))
        layout.blob(WEIGHTS)
        until(lambda: run.progress.snapshot().bytesDone == len(WEIGHTS))
        now = run.progress.snapshot()
        assert (now.state, now.currentFile) == ("Pulling", "model.safetensors")
        (layout.root / "blobs" / "sha256" / sha256(WEIGHTS)).unlink()
        until(lambda: run.progress.snapshot().bytesDone == 0)
    finally:
        run.abort(Interrupted("stopped"))
        following.join(WITHIN)
    assert not following.is_alive()


@pytest.mark.parametrize("content", [None, b"{", b"[]", manifest_of([]) + b" " * (5 << 20)])
def test_without_a_usable_manifest_nothing_is_counted_and_nothing_fails(
    layout: LayoutWriter, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "manifest.json"
    if content is not None:
        file.write_bytes(content)
    layout.blob(WEIGHTS)
    run = Run(AgentSettings(deadline=0.05))
    with pytest.raises(DeadlineExceeded):
        follow_pull(run, layout=layout.root, manifest=file)
    now = run.progress.snapshot()
    assert (now.state, now.bytesDone, now.bytesTotal) == ("Pulling", 0, 0)


def test_as_a_process_it_serves_progress_and_ends_well_when_told_to(
    layout: LayoutWriter, manifest: Path, tmp_path: Path
) -> None:
    layout.blob(WEIGHTS)
    command = [sys.executable, "-m", "noctaya_prewarm", "follow-pull"]
    log = tmp_path / "log"
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "--layout", str(layout.root), "--manifest", str(manifest)],
            env={
                "PATH": os.environ["PATH"],
                "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
                "NOCTAYA_PREWARM_TERMINATION_LOG": str(tmp_path / "termination"),
            },
            stderr=said,
        )
        try:
            until(lambda: '"http_port"' in log.read_text())
            (port,) = [
                json.loads(line)["http_port"] for line in log.read_text().splitlines() if "http_port" in line
            ]
            url = f"http://127.0.0.1:{port}/progress"
            told: dict[str, object] = {}

            def counted() -> bool:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    told.update(json.load(answer))
                return told["bytesDone"] == len(WEIGHTS)

            until(counted)
            assert told["bytesTotal"] == sum(BLOBS.values())
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN) == 0
        finally:
            process.kill()
            process.wait()
