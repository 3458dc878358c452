"""Programs that earlier versions of this repository built elsewhere in the cache are taken over."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from .catalogue import Group, Part, cache_root
from .gotool import BuildError


def former_folder(group: Group) -> Path:
    """Where 0.5 development versions kept the programs of the API server for tests."""
    return cache_root().with_name("apiserver") / group.key


def adopt(
    part: Part, group: Group, *, check: Callable[[Part, Path], None], report: Callable[[str], None]
) -> None:
    """Link the program to its new place when it is where it used to be, whole and of the right version."""
    former = former_folder(group) / part.name
    if not former.exists():
        return
    try:
        check(part, former)
    except BuildError as error:
        report(f"{former} is not taken over: {error}")
        return
    partial = group.folder / f".{part.name}.partial"
    partial.unlink(missing_ok=True)
    try:
        os.link(former, partial)
    except OSError:  # another file system, or one without links
        shutil.copy2(former, partial)
    partial.replace(group.folder / part.name)
    report(f"{part.name}: taken over from {former.parent}")
