"""`stage` as a process: exit codes, and what the termination message tells the operator."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from noctaya_prewarm.errors import NoSpace
from noctaya_prewarm.run import Run
from noctaya_prewarm.stage import stage
from oci_artifacts import REPOSITORY, LayoutWriter, manifest_of, source_of, titled, tree_of

WEIGHTS = os.urandom(3_000_000)


def staged(layout: LayoutWriter, cache: Path, source: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, termination message and log of one process."""
    termination = cache.parent / "termination-log"
    place = f"{cache}/sha256-{{digest}}"
    command = [
        sys.executable,
        "-m",
        "noctaya_prewarm",
        "stage",
        "--from",
        str(layout.root),
        "--source",
        source,
    ]
    done = subprocess.run(
        [*command, "--target", place, "--marker", f"{place}/.noctaya-ready"],
        env={
            "PATH": os.environ["PATH"],
            "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
            "NOCTAYA_PREWARM_TERMINATION_LOG": str(termination),
            "NOCTAYA_PREWARM_DISK_MARGIN": "0",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    message: dict[str, Any] = json.loads(termination.read_text())
    return done.returncode, message, done.stderr + done.stdout


def test_success_tells_the_digest(layout: LayoutWriter, cache: Path) -> None:
    digest = layout.files({"model.safetensors": WEIGHTS})
    code, message, _ = staged(layout, cache, f"oci://{REPOSITORY}:v1")
    assert code == message["code"] == 0
    assert message["digest"] == message["revision"] == f"sha256:{digest}"
    assert (message["state"], message["reason"]) == ("Done", "Done")
    assert message["bytesDone"] == message["bytesTotal"] == len(WEIGHTS)
    assert tree_of(cache / f"sha256-{digest}") == {"model.safetensors": WEIGHTS}


def test_damage_is_exit_code_13(layout: LayoutWriter, cache: Path) -> None:
    digest = layout.files({"model.safetensors": WEIGHTS})
    layout.blob(WEIGHTS).write_bytes(WEIGHTS[:-1])
    code, message, log = staged(layout, cache, source_of(digest))
    assert code == message["code"] == 13
    assert message["reason"] == "IntegrityFault"
    assert "layer 1 ('model.safetensors') has 2999999 bytes" in message["message"]
    assert "Traceback" not in log


def test_refused_content_is_exit_code_14(layout: LayoutWriter, cache: Path) -> None:
    layout.blob(b"evil")
    digest = layout.manifest(manifest_of([titled(b"evil", "../../evil")]))
    code, message, log = staged(layout, cache, source_of(digest))
    assert code == message["code"] == 14
    assert message["reason"] == "Refused"
    assert "title of layer 1 '../../evil'" in message["message"]
    assert "Traceback" not in log


def test_a_full_disk_is_told_and_the_next_run_goes_on(layout: LayoutWriter, cache: Path, run: Run) -> None:
    digest = layout.files({"a": WEIGHTS[:900_000], "b": WEIGHTS})
    target = cache / f"sha256-{digest}"
    given: dict[str, Any] = {
        "layout": layout.root,
        "source": source_of(digest),
        "target": str(target),
        "marker": str(target / ".noctaya-ready"),
        "prune": False,
    }
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(NoSpace, match="the next run goes on from there"):
            stage(**given, run=run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not target.exists()
    stage(**given, run=run)
    assert tree_of(target) == {"a": WEIGHTS[:900_000], "b": WEIGHTS}
