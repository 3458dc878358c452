"""The Debian packages of a tree: what dpkg knows of them, and which ones a set of roots needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

STATUS = Path("var/lib/dpkg/status")
STATUS_PARTS = Path("var/lib/dpkg/status.d")
"""One file a package: how images without dpkg tell scanners what is inside."""
INFO = Path("var/lib/dpkg/info")


@dataclass(frozen=True)
class Package:
    """One installed package. `depends` holds one tuple of alternatives for each thing needed."""

    name: str
    version: str
    architecture: str
    source: str
    depends: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]
    stanza: str


def parse_status(text: str) -> dict[str, Package]:
    """The installed packages of a dpkg status file, by name."""
    packages = (_parse_stanza(stanza) for stanza in re.split(r"\n\s*\n", text.strip()) if stanza.strip())
    return {package.name: package for package in packages if package is not None}


def closure(
    packages: Mapping[str, Package], roots: Iterable[str], *, without: frozenset[str] = frozenset()
) -> list[Package]:
    """The roots and all they need, in order of name.

    Args:
        packages: everything installed.
        roots: names; KeyError when one is not installed.
        without: names whose need is known not to exist at run time (maintainer scripts, shells).
    """
    providers: dict[str, str] = {}
    for package in packages.values():
        for name in (*package.provides, package.name):
            providers.setdefault(name, package.name)
    waiting, found = [packages[name].name for name in roots], set[str]()
    while waiting:
        name = waiting.pop()
        if name in found or name in without:
            continue
        found.add(name)
        for alternatives in packages[name].depends:
            installed = [providers[one] for one in alternatives if one in providers]
            waiting.extend(installed[:1])
    return [packages[name] for name in sorted(found)]


def files_of(tree: Path, package: Package) -> list[Path]:
    """Paths inside the tree that belong to a package, as dpkg has them."""
    names = (f"{package.name}.list", f"{package.name}:{package.architecture}.list")
    listing = next(path for name in names if (path := tree / INFO / name).exists())
    return [Path(line.lstrip("/")) for line in listing.read_text().splitlines() if line not in {"", "/."}]


def _parse_stanza(stanza: str) -> Package | None:
    fields: dict[str, str] = {}
    for line in re.sub(r"\n[ \t]+", " ", stanza).splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    if "installed" not in fields.get("Status", "installed").split():
        return None
    needs = ", ".join(fields[name] for name in ("Pre-Depends", "Depends") if fields.get(name))
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields.get("Architecture", "all"),
        source=fields.get("Source", fields["Package"]).split()[0],
        depends=tuple(
            tuple(_bare(alternative) for alternative in need.split("|"))
            for need in needs.split(",")
            if need.strip()
        ),
        provides=tuple(_bare(name) for name in fields.get("Provides", "").split(",") if name.strip()),
        stanza=stanza.strip() + "\n",
    )


def _bare(dependency: str) -> str:
    """`libc6:any (>= 2.36)` is `libc6`."""
    return re.split(r"[\s(:]", dependency.strip())[0]
