"""Clocks that can be set: what is applied to a Deployment, and what libfaketime then does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from noctaya_chaos import clocks
from noctaya_chaos.clocks import Workload, rolled, write_offset
from noctaya_parts.debian import Debian

WORKLOAD = Workload(namespace="team", name="chat-gateway", container="gateway")
TELL = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""


def test_what_is_applied_names_the_container_and_a_file_for_each_pod() -> None:
    library = Path("/usr/lib/here/faketime/libfaketimeMT.so.1")
    applied = WORKLOAD.with_clock(library=library, clocks=Path("/clocks"))
    spec = applied["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "gateway"
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment["LD_PRELOAD"] == "/chaos/library/libfaketimeMT.so.1"
    assert environment["FAKETIME_TIMESTAMP_FILE"] == "/chaos/clocks/$(CHAOS_POD_NAME)"
    names = [each["name"] for each in container["env"]]
    assert names.index("CHAOS_POD_NAME") < names.index("FAKETIME_TIMESTAMP_FILE"), "known before it is used"
    paths = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"]}
    assert paths == {"chaos-library": str(library.parent), "chaos-clocks": "/clocks"}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert "spec" not in WORKLOAD.bare(), "what gives everything up sets nothing"


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({}, True),
        ({"observedGeneration": 1}, False),
        ({"updatedReplicas": 1}, False),
        ({"replicas": 3}, False),
        ({"availableReplicas": 1}, False),
    ],
)
def test_a_rollout_is_over_when_all_are_new_and_available(changes: dict[str, int], over: bool) -> None:
    status = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    deployment: dict[str, Any] = {"metadata": {"generation": 2}, "spec": {"replicas": 2}}
    assert rolled({**deployment, "status": {**status, **changes}}) is over
    assert not rolled(deployment)


def test_without_the_library_there_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ensure_packages", lambda *names: None)
    with pytest.raises(clocks.NoLibrary, match=r"libfaketimeMT\.so\.1.*package libfaketime"):
        clocks.find_library(tmp_path)
    library = tmp_path / "x86_64-linux-gnu" / "faketime" / "libfaketimeMT.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    assert clocks.find_library(tmp_path) == library


def test_an_offset_is_written_whole_and_with_its_sign(tmp_path: Path) -> None:
    file = tmp_path / "pod"
    write_offset(file, 90)
    assert file.read_text() == "+90\n"
    write_offset(file, -90)
    assert file.read_text() == "-90\n"
    assert list(tmp_path.iterdir()) == [file]


@contextmanager
def telling(file: Path, library: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a clock that can be set; it says what both clocks tell for each line."""
    applied = WORKLOAD.with_clock(library=library, clocks=file.parent)
    (container,) = applied["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    environment |= {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(file)}
    with subprocess.Popen(
        [sys.executable, "-I", "-c", TELL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as child:
        try:
            yield child
        finally:
            child.communicate("")


def off(child: subprocess.Popen[str]) -> tuple[float, float]:
    """How far the clocks of a process are off."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    wall, monotonic = map(float, child.stdout.readline().split())
    return wall - time.time(), monotonic - time.monotonic()


def test_a_running_process_goes_by_what_the_file_says_and_its_monotonic_clock_does_not(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0 and not os.environ.get("CI") and Debian().missing([clocks.PACKAGE]):
        pytest.skip("only root can install libfaketime, which the chaos run needs")
    library = clocks.find_library()
    file = tmp_path / "pod"

    def await_off(seconds: float) -> None:
        end = time.monotonic() + 30
        while abs(off(child)[0] - seconds) > 10:
            assert time.monotonic() < end, f"the clock is {off(child)[0]:.1f} s off"
            time.sleep(0.2)
        assert abs(off(child)[1]) < 10

    with telling(file, library) as child:
        assert abs(off(child)[0]) < 10
        for seconds in (90, -90):
            write_offset(file, seconds)
            await_off(seconds)
        file.unlink()
        await_off(0)
