"""What all services of one `noctaya run` share, and the files of that run."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from noctaya_cli.child import Spawn
from noctaya_cli.ports import PortPool
from noctaya_cli.probe_attempt import Attempt

KEPT_RUNS = 10
"""Log directories of earlier runs that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The seams to the operating system. `directory` holds the logs and control files of this run."""

    spawn: Spawn
    attempt: Attempt
    environment: Mapping[str, str]
    ports: PortPool
    directory: Path
    gateway_program: Path
    gateway_overrides: Mapping[str, str]


def state_directory() -> Path:
    """Where runs keep their logs: $XDG_STATE_HOME/noctaya, by default ~/.local/state/noctaya."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "noctaya"


def make_run_directory(root: Path, *, stamp: str) -> Path:
    """A new directory for one run, only for this user; the oldest beyond `KEPT_RUNS` are removed.

    `stamp` sorts by time and is unique among runs. Raises OSError when it can't be created.
    """
    root.mkdir(parents=True, exist_ok=True)
    earlier = sorted(path for path in root.glob("run-*") if path.is_dir())
    for path in earlier[: max(0, len(earlier) - KEPT_RUNS + 1)]:
        if not is_running(path):
            shutil.rmtree(path, ignore_errors=True)  # another run may be removing it too
    directory = root / f"run-{stamp}"
    directory.mkdir(mode=0o700)
    try:
        (directory / "pid").write_text(f"{os.getpid()}\n")
    except OSError as error:  # a full disk is found when writing, without a name
        raise OSError(error.errno, error.strerror, str(directory)) from error
    return directory


def is_running(directory: Path) -> bool:
    """Does the run that made this directory still go on?"""
    try:
        os.kill(int((directory / "pid").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def write_atomically(path: Path, text: str) -> None:
    """Replace the file as a whole, so that a reader never sees half of it."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
