"""A run-time root made of the files of a few Debian packages: no shell, no package manager, nothing setuid.

What maintainer scripts make at installation and programs need at run time is copied or made here by name:
users, certificate bundle, loader cache, compiled bytecode.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noctaya_engine.debian import STATUS, STATUS_PARTS, Package, closure, files_of, parse_status

FORMAT: Final = "1"
"""Raise it when this module makes another root from the same packages: base images are cached by it."""

NOT_AT_RUN_TIME: Final = frozenset(
    {
        "debconf",
        "debconf-2.0",
        "dpkg",
        "install-info",
        "libc-bin",
        "mawk",
        "openssl",
        "perl-base",
        "readline-common",
    }
)
"""Needed by maintainer scripts, or only for what a server has no use for."""

LEFT_OUT: Final = (
    "usr/share/man/*",
    "usr/share/info/*",
    "usr/share/locale/*",
    "usr/share/lintian/*",
    "usr/share/bug/*",
    "usr/share/gdb/*",
    "usr/share/doc-base/*",
    "usr/share/applications/*",
    "usr/share/pixmaps/*",
    "usr/share/menu/*",
    "usr/share/python3/*",
    "usr/lib/*-linux-gnu/gconv/*",
    "usr/lib/valgrind/*",
    "etc/update-motd.d/*",
    "var/cache/*",
    "var/backups/*",
)
KEPT_OF_DOC: Final = "usr/share/doc/*/copyright"
GENERATED: Final = (
    "etc/passwd",
    "etc/group",
    "etc/nsswitch.conf",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/debian_version",
    "etc/ld.so.conf",
    "usr/lib/locale/C.utf8",
)
LINKS: Final = {
    "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
    "usr/lib/ssl/certs": "/etc/ssl/certs",
}
FOLDERS: Final = ("dev", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "var/tmp")
USER: Final = 65532
PROGRAM_FOLDERS: Final = ("bin/*", "sbin/*", "usr/bin/*", "usr/sbin/*")


@dataclass(frozen=True)
class Recipe:
    """What goes into a run-time root.

    `programs` are patterns of the files in program folders that stay; of all others only libraries and data
    are taken.
    """

    name: str
    roots: tuple[str, ...]
    programs: tuple[str, ...]


PYTHON: Final = Recipe(
    "python",
    roots=("base-files", "ca-certificates", "libstdc++6", "netbase", "python3"),
    programs=("usr/bin/python3", "usr/bin/python3.[0-9]*"),
)
PYTHON_SHELL: Final = Recipe(
    "python-shell",
    roots=(*PYTHON.roots, "coreutils", "dash", "libgomp1"),
    programs=(*PYTHON.programs, "bin/*", "usr/bin/*"),
)
"""For model servers: a drain hook is `/bin/sh -c "sleep N"`, and engines use OpenMP."""
RECIPES: Final = {recipe.name: recipe for recipe in (PYTHON, PYTHON_SHELL)}


def distill(full: Path, target: Path, recipe: Recipe) -> list[Package]:
    """Make the root `target` from the installed tree `full`; returns the packages in it."""
    packages = closure(parse_status((full / STATUS).read_text()), recipe.roots, without=NOT_AT_RUN_TIME)
    _merged_folders(full, target)
    for package in packages:
        for path in files_of(full, package):
            if wanted(path, recipe.programs):
                _copy(full, target, path)
        part = target / STATUS_PARTS / package.name
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(package.stanza)
    _generated(full, target)
    return packages


def wanted(path: Path, programs: Sequence[str]) -> bool:
    """Whether a file of a package belongs into a run-time root."""
    name = str(path)
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in PROGRAM_FOLDERS):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in programs)
    if name.startswith("usr/share/doc/"):
        return fnmatch.fnmatchcase(name, KEPT_OF_DOC)
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def _merged_folders(full: Path, target: Path) -> None:
    """`/bin`, `/lib` and the like are links into `/usr` in today's Debian; they come first."""
    for entry in sorted(full.iterdir()):
        if entry.is_symlink():
            (target / entry.name).symlink_to(entry.readlink())
            (target / entry.readlink()).mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        (target / folder).chmod(0o1777)


def _copy(full: Path, target: Path, path: Path) -> None:
    source, place = full / path, target / path
    if not source.is_symlink() and source.is_dir():
        return  # folders appear with the files in them
    if not os.path.lexists(source):
        return  # a file that a later package diverted or removed
    place.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(place):
        return
    shutil.copy2(source, place, follow_symlinks=False)
    if not source.is_symlink():
        place.chmod(stat.S_IMODE(source.stat().st_mode) & 0o755)
    compiled = source.parent / "__pycache__"
    if source.suffix == ".py" and compiled.is_dir():
        (place.parent / "__pycache__").mkdir(exist_ok=True)
        for code in compiled.glob(f"{source.stem}.cpython-*.pyc"):
            shutil.copy2(code, place.parent / "__pycache__" / code.name)


def _generated(full: Path, target: Path) -> None:
    for name in GENERATED:
        source, place = full / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)
    for link, destination in LINKS.items():
        place = target / link
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(place):
            place.symlink_to(destination)
    with (target / "etc/passwd").open("a") as users, (target / "etc/group").open("a") as groups:
        users.write(f"nonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n")
        groups.write(f"nonroot:x:{USER}:\n")
    subprocess.run(["ldconfig", "-r", target], check=True)


def main(full: Path, target: Path) -> None:
    """Every root below `target`, from the tree `full`: inside a build this is its own root."""
    for recipe in RECIPES.values():
        (target / recipe.name).mkdir(parents=True)
        distill(full, target / recipe.name, recipe)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
