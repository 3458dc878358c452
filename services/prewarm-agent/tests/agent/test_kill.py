"""kill -9 at any step and any byte leads to no marker on bad data, and the next run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_model_hub import Content, Effect, Hub, Match, Pattern, Served

from .kit import MIB, content_of, hub_beside

AGENT = Path(__file__).with_name("killed_agent.py")
OBJECTS: dict[str, Content | bytes | str] = {
    "m/a.bin": Pattern(size=3 * MIB + 11, seed=3),
    "m/b/c.bin": Pattern(size=MIB // 2, seed=4),
    "m/d": "d",
}
NEVER = 10**9
# A run makes about 150 steps; one that isn't reached means a run that was never killed.
STEPS = st.integers(1, 160)


@pytest.fixture(scope="module")
def bucket() -> Iterator[tuple[Hub, Served]]:
    hub = Hub()
    hub.bucket("weights", OBJECTS)
    with hub_beside(hub) as served:
        yield hub, served


def environment(served: Served, target: Path, *, connections: int = 3) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "NOCTAYA_PREWARM_ENDPOINT": served.s3_url,
        "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_PREWARM_TERMINATION_LOG": str(target.parent.parent / "termination"),
        "NOCTAYA_PREWARM_RANGE_SIZE": "1Mi",
        "NOCTAYA_PREWARM_CONNECTIONS": str(connections),
    }


def command(target: Path, *, step: int = NEVER, torn_at: int = 0) -> list[str]:
    agent = [sys.executable, str(AGENT), str(step), str(torn_at), "download"]
    return [*agent, "--source", "s3://weights/m", "--target", str(target)]


def run_agent(served: Served, target: Path, *, step: int = NEVER, torn_at: int = 0) -> int:
    line = command(target, step=step, torn_at=torn_at)
    env = environment(served, target)
    done = subprocess.run(line, env=env, timeout=60, capture_output=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()
    return done.returncode


def assert_honest(target: Path) -> bool:
    """A marker may be there only with all it vouches for. Returns whether it is."""
    marker = target / ".noctaya-ready"
    if not marker.exists():
        return False
    said = {file["path"] for file in json.loads(marker.read_text())["files"]}
    assert said == {key.removeprefix("m/") for key in OBJECTS}
    for key, content in OBJECTS.items():
        found = (target / key.removeprefix("m/")).read_bytes()
        assert found == (content_of(content) if isinstance(content, Pattern) else b"d")
    return True


@settings(max_examples=8)
@given(kills=st.lists(st.tuples(STEPS, st.integers(0, 300_000)), min_size=1, max_size=2))
def test_m1_a_kill_at_any_byte_is_survived(bucket: tuple[Hub, Served], kills: list[tuple[int, int]]) -> None:
    _, served = bucket
    with TemporaryDirectory() as folder:
        target = Path(folder) / "models" / "s3-0123456789abcdef"
        target.parent.mkdir()
        for step, torn_at in kills:
            run_agent(served, target, step=step, torn_at=torn_at)
            assert_honest(target)
        assert run_agent(served, target) == 0
        assert assert_honest(target)
        assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_m1_what_a_killed_run_fetched_is_not_fetched_again(
    bucket: tuple[Hub, Served], tmp_path: Path
) -> None:
    hub, served = bucket
    target = tmp_path / "models" / "s3-0123456789abcdef"
    target.parent.mkdir()
    hub.faults.add(Match(route="s3-get", path="m/a.bin", from_byte=MIB), Effect(stall_after=0))
    with subprocess.Popen(command(target), env=environment(served, target, connections=1)) as agent:
        try:
            wait_for_journal(target, b"0 1048576\n")
        finally:
            agent.kill()
    hub.faults.clear()
    hub.requests.clear()
    assert run_agent(served, target) == 0
    assert assert_honest(target)
    total = sum(seen.sent for seen in hub.requests.of("s3-get", method="GET"))
    assert total == 1 + sum(one.size for one in OBJECTS.values() if isinstance(one, Pattern)) - MIB


def wait_for_journal(target: Path, line: bytes) -> None:
    parts = target.with_name(f"{target.name}.partial") / ".noctaya-state" / "parts"
    ends = time.monotonic() + 60
    while not any(line in journal.read_bytes() for journal in parts.glob("*.journal")):
        assert time.monotonic() < ends
        time.sleep(0.01)
