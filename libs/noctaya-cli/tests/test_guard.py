"""Guarded children: exits are reported, and nothing survives whoever dies."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from noctaya_cli.child import CommandFailed, Exit, GuardedChild, spawn_guarded

from .conftest import FAKE_MODEL, eventually, is_alive, wait_for


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


def said(log: Path) -> str:
    return log.read_text()


def written_pid(path: Path) -> int:
    return int(path.read_text()) if path.exists() and path.read_text() else 0


async def spawn(code: str, environment: dict[str, str], log: Path) -> GuardedChild:
    return await spawn_guarded([sys.executable, "-c", textwrap.dedent(code)], env=environment, log=log)


async def test_the_exit_code_is_reported(environment: dict[str, str], log: Path) -> None:
    child = await spawn("import sys; print('said'); sys.exit(7)", environment, log)
    assert await child.wait() == Exit(code=7)
    assert said(log) == "said\n"


async def test_a_signal_is_reported_by_name(environment: dict[str, str], log: Path) -> None:
    child = await spawn("import os; os.kill(os.getpid(), 6)", environment, log)
    ended = await child.wait()
    assert ended == Exit(signal=signal.SIGABRT)
    assert str(ended) == "killed by SIGABRT"


async def test_a_command_that_does_not_exist_is_an_error(environment: dict[str, str], log: Path) -> None:
    with pytest.raises(CommandFailed, match="no-such-program: No such file"):
        await spawn_guarded(["no-such-program"], env=environment, log=log)


async def test_the_child_gets_exactly_the_given_environment(log: Path) -> None:
    child = await spawn("import os; print(sorted(os.environ))", {"ONLY": "this"}, log)
    await child.wait()
    assert "ONLY" in said(log)
    assert "HOME" not in said(log)


async def test_terminate_reaches_the_main_process_only_and_kill_everything(
    environment: dict[str, str], log: Path, tmp_path: Path, fake_model: list[str]
) -> None:
    pid_file = tmp_path / "pid"
    command = [*fake_model, "--ignore-term", "--grandchild", str(pid_file)]
    child = await spawn_guarded(command, env=environment, log=log)
    await eventually(lambda: written_pid(pid_file) > 0)
    grandchild = written_pid(pid_file)
    child.terminate()
    await asyncio.sleep(0.2)
    assert is_alive(child.pid)
    child.kill()
    assert await child.wait() == Exit(signal=signal.SIGKILL)
    assert not is_alive(grandchild)


async def test_what_the_child_leaves_running_is_killed_when_it_ends(
    environment: dict[str, str], log: Path, tmp_path: Path, fake_model: list[str]
) -> None:
    pid_file = tmp_path / "pid"
    child = await spawn_guarded([*fake_model, "--grandchild", str(pid_file)], env=environment, log=log)
    await eventually(lambda: written_pid(pid_file) > 0)
    child.terminate()
    await child.wait()
    assert not is_alive(written_pid(pid_file))


async def test_orders_to_a_child_that_is_gone_have_no_effect(environment: dict[str, str], log: Path) -> None:
    child = await spawn("pass", environment, log)
    await child.wait()
    child.terminate()
    child.kill()
    assert await child.wait() == Exit(code=0)


async def test_a_killed_guard_takes_the_child_with_it(
    environment: dict[str, str], log: Path, fake_model: list[str]
) -> None:
    child = await spawn_guarded(fake_model, env=environment, log=log)
    os.kill(child.guard_pid, signal.SIGKILL)
    assert await child.wait() == Exit(signal=signal.SIGKILL)
    await eventually(lambda: not is_alive(child.pid))


PARENT = """
import asyncio, os, sys
from pathlib import Path
import noctaya_cli.child as child_module
child_module.ORPHAN_GRACE = 0.5

async def main():
    command = [sys.executable, "-I", "-S", *sys.argv[2:]]
    child = await child_module.spawn_guarded(command, env=dict(os.environ), log=Path(sys.argv[1]) / "log")
    print(child.pid, child.guard_pid, flush=True)
    await child.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("stubborn", [[], ["--ignore-term"]], ids=["obedient", "ignores SIGTERM"])
def test_no_process_survives_a_killed_parent(tmp_path: Path, stubborn: list[str]) -> None:
    pid_file = tmp_path / "pid"
    model = [str(FAKE_MODEL), "--grandchild", str(pid_file), *stubborn]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), *model], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        wait_for(lambda: written_pid(pid_file) > 0)
        pids.append(written_pid(pid_file))
        assert all(map(is_alive, pids))
        parent.kill()
    wait_for(lambda: not any(map(is_alive, pids)))
