"""Programs, built from their Go modules into the user's cache.

Minutes, once for each set of versions. A program appears under its name only when it is complete and says
the right version, so a build that was interrupted goes on where it was; what was compiled is in Go's own
cache.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from .adoption import adopt
from .catalogue import PARTS, Group, Part, wanted
from .gotool import BuildError, Go
from .lock import lock_folder
from .locking import locked

PROGRESS_SECONDS: Final = 10.0
VERSION_SECONDS: Final = 60.0
"""A busy machine reads a binary of 100 MB for the first time."""
WORK: Final = ".build-"

Report = Callable[[str], None]


def ensure(*names: str, report: Report = print) -> dict[str, Path]:
    """The programs with these names, all of them when none is named; built when they are not in the cache.

    Of two builds at once the second waits for the first and finds them there. With everything in the cache no
    process is started.

    Args:
        names: see `noctaya_parts.PARTS`.
        report: gets a line of progress at least every ten seconds or so while something is built.

    Raises:
        BuildError: no Go, no network, or the compiler failed.
        UnknownPart: a name that there is not.
    """
    found: dict[str, Path] = {}
    for group, parts in wanted(names or PARTS):
        if _missing(parts, group.folder):
            _ensure_group(group, parts, report)
        found |= {part.name: group.folder / part.name for part in parts}
    return {name: found[name] for name in names or PARTS}


def _ensure_group(group: Group, parts: list[Part], report: Report) -> None:
    group.folder.mkdir(parents=True, exist_ok=True)
    waiting = f"another build of {group.name} is running, waiting for it"
    with locked(group.folder / ".lock", waiting=lambda: report(waiting)):
        for part in _missing(parts, group.folder):
            adopt(part, group, check=lambda part, binary: check_version(group, part, binary), report=report)
        if missing := _missing(parts, group.folder):
            _build(group, missing, report)


def _missing(parts: list[Part], folder: Path) -> list[Part]:
    return [part for part in parts if not (folder / part.name).exists()]


def _build(group: Group, parts: list[Part], report: Report) -> None:
    """Build into a folder of its own beside the target. Call it with the lock held."""
    go = Go()
    report(f"building {', '.join(part.name for part in parts)} into {group.folder}; minutes, but only once")
    for left_behind in group.folder.glob(f"{WORK}*"):  # by a build that was killed
        shutil.rmtree(left_behind)
    with tempfile.TemporaryDirectory(prefix=WORK, dir=group.folder) as work:
        module = Path(work) / "module"
        shutil.copytree(lock_folder(group), module)
        report(f"{group.name}: downloading modules")
        for part in parts:
            _build_one(go, group, part, module, report)


def _build_one(go: Go, group: Group, part: Part, module: Path, report: Report) -> None:
    started = told = time.monotonic()
    packages = go.packages(part.package, cwd=module)
    report(f"{part.name}: {packages} packages")
    target = module / part.name
    for compiled in go.build(part.package, target, cwd=module, ldflags=group.ldflags):
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            report(f"{part.name}: {compiled} compiled of at most {packages}, {told - started:.0f} s")
    check_version(group, part, target)
    target.replace(group.folder / part.name)
    report(f"{part.name}: done in {time.monotonic() - started:.0f} s")


def check_version(group: Group, part: Part, binary: Path) -> None:
    """Raises BuildError when the program can't run here or is another version than the one pinned."""
    if not part.says:
        module = group.modules[0]
        if f"\t{module.path}\tv{module.version}\t" not in Go().made_of(binary):
            raise BuildError(f"{binary} was not built from {module.pinned}")
        return
    try:
        done = subprocess.run(
            [binary, *part.ask],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{binary} does not run: {error}") from error
    if part.says not in done.stdout:
        first = (done.stdout.splitlines() or [""])[0]
        raise BuildError(f"{binary} says {first!r} where {part.says!r} was built")
