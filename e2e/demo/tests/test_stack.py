"""The process that the demo runs never outlives it, whatever ends the demo."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

DEMO = """
import sys, time
from pathlib import Path
from noctaya_demo.stack import Stack
sys.executable = sys.argv[1]
stack = Stack(Path("manifests"), models=Path("."), directory=Path(sys.argv[2]), port=0)
print(stack.process.pid, flush=True)
try:
    time.sleep(60)
finally:
    stack.stop()
"""
PROGRAM = f"""#!{sys.executable}
import pathlib, signal, sys, time
def stop(*_):
    time.sleep(0.5)
    pathlib.Path(__file__).with_name("ended").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
pathlib.Path(__file__).with_name("started").touch()
time.sleep(60)
"""
WITHIN = 30.0


@pytest.fixture
def demo(tmp_path: Path) -> subprocess.Popen[str]:
    """A demo that has started a program in place of `noctaya`, which takes half a second to end."""
    program = tmp_path / "noctaya"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    started = subprocess.Popen(
        [sys.executable, "-c", DEMO, str(tmp_path / "python"), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "started")
    return started


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + WITHIN
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name}"
        time.sleep(0.02)


def child_of(demo: subprocess.Popen[str]) -> psutil.Process:
    assert demo.stdout is not None
    return psutil.Process(int(demo.stdout.readline()))


def test_impatient_interrupts_do_not_leave_it_behind(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    with demo:
        child = child_of(demo)
        while child.is_running() and demo.poll() is None:
            demo.send_signal(signal.SIGINT)
            time.sleep(0.05)
        demo.wait(WITHIN)
    assert (tmp_path / "ended").exists()
    assert not child.is_running()


def test_a_killed_demo_ends_it_too(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    with demo:
        child = child_of(demo)
        demo.kill()
        demo.wait(WITHIN)
    wait_for(tmp_path / "ended")
    psutil.wait_procs([child], timeout=WITHIN)
    assert not child.is_running()
