"""etcd, kube-apiserver and kube-controller-manager, built from their Go modules into the user's cache.

`go install pkg@version` refuses Kubernetes: its go.mod replaces the `k8s.io/*` modules by folders of its own
repository. A wrapper module that replaces each of them by its published version builds it. About eight
minutes on two cores, once for each set of versions; each binary appears under its name only when it is
complete and says the right version, so a build that was interrupted goes on where it was.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .gotool import BuildError, Go
from .locking import locked
from .versions import ETCD, KUBERNETES, binaries_folder

ETCD_MODULE: Final = "go.etcd.io/etcd/server/v3"
KUBERNETES_MODULE: Final = "k8s.io/kubernetes"
PROGRESS_SECONDS: Final = 10.0

Report = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """One program: its package and what `--version` prints of it."""

    name: str
    package: str
    says: str


PARTS: Final = (
    Part("etcd", ETCD_MODULE, f"etcd Version: {ETCD}"),
    Part("kube-apiserver", f"{KUBERNETES_MODULE}/cmd/kube-apiserver", f"Kubernetes v{KUBERNETES}"),
    Part(
        "kube-controller-manager",
        f"{KUBERNETES_MODULE}/cmd/kube-controller-manager",
        f"Kubernetes v{KUBERNETES}",
    ),
)


@dataclass(frozen=True)
class Binaries:
    """Paths of the built programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path


def ensure_binaries(*, report: Report = print, folder: Path | None = None) -> Binaries:
    """The binaries, built when they are not in the cache.

    Of two builds at once the second waits for the first and finds them there.

    Args:
        report: gets a line of progress at least every ten seconds or so.
        folder: instead of the cache's own place.

    Raises:
        BuildError: no Go, no network, or the compiler failed.
    """
    folder = folder or binaries_folder()
    if _missing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock", waiting=lambda: report("another build is running, waiting for it")):
            for_now = _missing(folder)
            if for_now:
                _build(for_now, folder, report)
    return Binaries(*(folder / part.name for part in PARTS))


def wrapper_module(kubernetes_go_mod: str) -> str:
    """go.mod of a module that can build Kubernetes, from the go.mod of Kubernetes itself.

    Each `k8s.io/x => ./staging/src/k8s.io/x` becomes the published module: v1.N.P is v0.N.P there.
    """
    staged = re.findall(r"^\s*(?:replace\s+)?(\S+)\s+=>\s+\./staging/", kubernetes_go_mod, re.MULTILINE)
    if not staged:
        raise BuildError(f"the go.mod of Kubernetes {KUBERNETES} replaces nothing by ./staging any more")
    published = f"v0.{KUBERNETES.split('.', 1)[1]}"
    return "\n".join(
        [
            "module noctaya.io/apiserver",
            "go 1.24.0",
            f"require {KUBERNETES_MODULE} v{KUBERNETES}",
            f"require {ETCD_MODULE} v{ETCD}",
            *(f"replace {name} => {name} {published}" for name in staged),
            "",
        ]
    )


def tools_file() -> str:
    """The Go file that makes `go mod tidy` keep what the programs need."""
    imports = "".join(f'\t_ "{part.package}"\n' for part in PARTS)
    return f"//go:build tools\n\npackage tools\n\nimport (\n{imports})\n"


def ldflags() -> str:
    """Without the version the API server says v0.0.0 and clients take it for an ancient one."""
    major, minor, _ = KUBERNETES.split(".")
    fields = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    named = (f"-X k8s.io/component-base/version.{name}={value}" for name, value in fields.items())
    return " ".join(["-s -w", *named])


def _missing(folder: Path) -> list[Part]:
    return [part for part in PARTS if not (folder / part.name).exists()]


def _build(parts: list[Part], folder: Path, report: Report) -> None:
    go = Go()
    names = ", ".join(part.name for part in parts)
    report(f"building {names} into {folder}; minutes, but only once")
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as work:
        module = Path(work)
        downloaded = go.download(f"{KUBERNETES_MODULE}@v{KUBERNETES}")
        (module / "go.mod").write_text(wrapper_module(Path(downloaded["GoMod"]).read_text()))
        (module / "tools.go").write_text(tools_file())
        report("downloading modules")
        go.tidy(module)
        for part in parts:
            _build_one(go, part, module, folder, report)


def _build_one(go: Go, part: Part, module: Path, folder: Path, report: Report) -> None:
    started = told = time.monotonic()
    packages = go.packages(part.package, cwd=module)
    report(f"{part.name}: {packages} packages")
    target = module / part.name
    lines = go.build(part.package, target, cwd=module, ldflags=ldflags())
    for compiled, _ in enumerate(lines, start=1):
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            report(f"{part.name}: {compiled} compiled of at most {packages}, {told - started:.0f} s")
    check_version(part, target)
    target.replace(folder / part.name)
    report(f"{part.name}: done in {time.monotonic() - started:.0f} s")


def check_version(part: Part, binary: Path) -> None:
    """Raises BuildError when the program can't run here or is another version than the one pinned."""
    try:
        done = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{binary} does not run: {error}") from error
    first = (done.stdout.splitlines() or [""])[0]
    if first != part.says:
        raise BuildError(f"{binary} says {first!r} where {part.says!r} was built")
