"""Takes out of an image's base what a service has no use for: package installers and setuid bits.

Runs as the last step of an image, by the interpreter it serves with, so it needs no shell. On a base that has
none of this it changes nothing.
"""

import os
import shutil
import stat
import sys
from pathlib import Path

INSTALLERS = (
    "pip",
    "setuptools",
    "wheel",
    "ensurepip",
    "_distutils_hack",
    "pkg_resources",
    "distutils-precedence.pth",
)
PROGRAMS = ("pip", "wheel", "easy_install", "idle", "pydoc", "2to3")
SKIPPED = {"proc", "sys", "dev", "mnt"}


def main(root: Path, prefix: Path) -> None:
    """Strip the file system below `root`; `prefix` is that of the interpreter of the base."""
    for library in prefix.glob("lib/python3*"):
        for place in (library, library / "site-packages", library / "dist-packages"):
            for entry in place.iterdir() if place.is_dir() else ():
                if entry.name.split("-")[0] in INSTALLERS or entry.name in INSTALLERS:
                    remove(entry)
    for program in (prefix / "bin").iterdir():
        if program.name.rstrip("0123456789.") in PROGRAMS:
            remove(program)
    for folder, names, files in os.walk(root):
        if Path(folder) == root:
            names[:] = [name for name in names if name not in SKIPPED]
        for name in files:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))


def remove(path: Path) -> None:
    """A folder with all in it, or a file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


if __name__ == "__main__":
    main(Path("/"), Path(sys.base_prefix))
