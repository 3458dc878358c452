"""The committed go.mod and go.sum of every group: every module that a program is made of, with its hash.

So a build gets what we got, or fails, and asks for no module that no program needs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from .catalogue import Group
from .gotool import Go
from .wrapper import tools_file, wrapper_module

LOCKS: Final = Path(__file__).with_name("locks")
FILES: Final = ("go.mod", "go.sum")


def lock_folder(group: Group) -> Path:
    """Where a group's lock files are."""
    return LOCKS / group.name


def write_lock(group: Group, go: Go) -> None:
    """Make the lock files of a group anew from the versions pinned. Raises BuildError."""
    if group.local:
        return
    go_mods = {module: Path(go.download(module.pinned)["GoMod"]).read_text() for module in group.modules}
    with tempfile.TemporaryDirectory(prefix="noctaya-lock-") as work:
        folder = Path(work)
        (folder / "go.mod").write_text(wrapper_module(group, go_mods))
        (folder / "tools.go").write_text(tools_file(group))
        go.tidy(folder)
        lock_folder(group).mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(folder / name, lock_folder(group) / name)
