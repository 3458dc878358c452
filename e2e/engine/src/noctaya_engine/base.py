"""Base images without an image registry: Debian packages by debootstrap, then only what programs need.

Three of them come from one installed tree: `build` (pip can be had), `python` (an interpreter and nothing
else) and `python-shell` (for model servers). They are kept as tars under a key made of what shapes them,
so they are made once, in two to four minutes. The packages are those of the day, security updates included;
`refresh` takes today's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noctaya_parts.locking import locked

from noctaya_engine import distill
from noctaya_engine.debian import STATUS, parse_status
from noctaya_engine.errors import BuildFailed
from noctaya_engine.places import architecture, base_folder

SUITE: Final = "bookworm"
PYTHON_VERSION: Final = "3.11"
INCLUDED: Final = (
    "ca-certificates",
    "coreutils",
    "dash",
    "libgomp1",
    "libstdc++6",
    "netbase",
    "python3",
    "python3-venv",
)
MIRROR_VARIABLE: Final = "NOCTAYA_DEBIAN_MIRROR"
DEFAULT_MIRROR: Final = "http://deb.debian.org"
"""Holds `debian` and `debian-security`."""
TIMESTAMP: Final = "@1577836800"
"""Of every file, so that the same packages give the same layers."""
BUILD: Final = "build"
MAKING: Final = ".making-"
RECIPES: Final = distill.RECIPES

Report = Callable[[str], None]

_INSTALL: Final = """
set -eu
debootstrap --variant=minbase --include="$INCLUDED" "$SUITE" "$TREE" "$MIRROR/debian"
cat > "$TREE/etc/apt/sources.list" <<SOURCES
deb $MIRROR/debian $SUITE main
deb $MIRROR/debian $SUITE-updates main
deb $MIRROR/debian-security $SUITE-security main
SOURCES
chroot "$TREE" apt-get -q update
chroot "$TREE" apt-get -q -y --no-install-recommends dist-upgrade
chroot "$TREE" apt-get -q clean
cd "$TREE"
rm -rf var/lib/apt/lists/* var/log/* var/cache/* etc/resolv.conf etc/hostname
chroot "$TREE" /usr/bin/python3 -m compileall -q -f --invalidation-mode unchecked-hash \
  /usr/lib/python3 "/usr/lib/python$PYTHON_VERSION"
"""


@dataclass(frozen=True)
class Base:
    """One base image: the tar of its root and the name it gets in an engine."""

    name: str
    tar: Path
    reference: str


def key() -> str:
    """Changes with whatever shapes the base images, save the packages of the day."""
    parts = [SUITE, PYTHON_VERSION, architecture(), _INSTALL, *INCLUDED, distill.FORMAT]
    parts += [repr(recipe) for recipe in RECIPES.values()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def ensure_bases(*, report: Report = print, refresh: bool = False) -> dict[str, Base]:
    """The base images, made when they are not in the cache or `refresh` is asked for.

    Raises:
        BuildFailed: not root, no debootstrap, or no Debian mirror can be reached.
    """
    folder = base_folder() / f"{SUITE}-{architecture()}-{key()}"
    if refresh or not (folder / "about.json").exists():
        base_folder().mkdir(parents=True, exist_ok=True)
        with locked(
            base_folder() / ".lock", waiting=lambda: report("the base images are being made, waiting")
        ):
            if refresh or not (folder / "about.json").exists():
                _make(folder, report)
    made = json.loads((folder / "about.json").read_text())
    return {
        name: Base(name, folder / f"{name}.tar", f"noctaya/{name}:{PYTHON_VERSION}-{SUITE}-{digest[:12]}")
        for name, digest in made["sha256"].items()
    }


def _make(folder: Path, report: Report) -> None:
    if os.geteuid() != 0:
        raise BuildFailed("base images are made by debootstrap, which needs root; or use --engine system")
    started = time.monotonic()
    report("base images: installing Debian packages; minutes, but only once")
    for left_by_a_killed_run in folder.parent.glob(f"{MAKING}*"):
        shutil.rmtree(left_by_a_killed_run)
    with tempfile.TemporaryDirectory(prefix=MAKING, dir=folder.parent) as work:
        place = Path(work)
        log = folder.parent / "debootstrap.log"
        tree = place / "tree"
        _install(tree, log)
        done = place / "done"
        done.mkdir()
        _pack(tree, done / f"{BUILD}.tar")
        for recipe in RECIPES.values():
            root = place / recipe.name
            root.mkdir()
            distill.distill(tree, root, recipe)
            _pack(root, done / f"{recipe.name}.tar")
        packages = parse_status((tree / STATUS).read_text())
        about = {
            "packages": {package.name: package.version for package in packages.values()},
            "sha256": {file.stem: _sha256(file) for file in sorted(done.glob("*.tar"))},
        }
        (done / "about.json").write_text(json.dumps(about, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        done.rename(folder)
    report(f"base images: made in {time.monotonic() - started:.0f} s")


def _install(tree: Path, log: Path) -> None:
    """In namespaces of its own, so that a killed run leaves neither mounts nor processes."""
    mirror = os.environ.get(MIRROR_VARIABLE) or DEFAULT_MIRROR
    settings = {
        "TREE": str(tree),
        "MIRROR": mirror.rstrip("/"),
        "SUITE": SUITE,
        "INCLUDED": ",".join(INCLUDED),
        "PYTHON_VERSION": PYTHON_VERSION,
        "DEBIAN_FRONTEND": "noninteractive",
        "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin",
    }
    isolated = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    with log.open("w") as output:
        done = subprocess.run(
            [*isolated, "--mount-proc", "sh", "-c", _INSTALL],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        words = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
        raise BuildFailed(
            f"the base images can't be made from {mirror} ({MIRROR_VARIABLE} names another mirror); "
            f"{log} ends with:\n{words}"
        )


def _pack(root: Path, target: Path) -> None:
    subprocess.run(
        [
            "tar",
            "--create",
            f"--file={target}",
            f"--directory={root}",
            "--sort=name",
            f"--mtime={TIMESTAMP}",
            "--numeric-owner",
            *(f"--exclude=./{name}/*" for name in ("proc", "sys", "dev", "run")),
            ".",
        ],
        check=True,
    )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
