"""Which programs there are, and of which Go modules each is made.

Programs whose modules agree on their dependencies are one group: one go.mod, one set of compiled packages.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .versions import (
    COREDNS,
    ETCD,
    HELM,
    HELM_KUBERNETES_MINOR,
    KEDA,
    KUBE_ROUTER,
    KUBERNETES,
    ORAS,
    PAUSE,
    REGISTRY,
)


class UnknownPart(ValueError):
    """No part, or no module, has this name."""


@dataclass(frozen=True, slots=True)
class Module:
    """One pinned Go module; `name` is ours for it."""

    name: str
    path: str
    version: str

    @property
    def pinned(self) -> str:
        """As the go command writes it."""
        return f"{self.path}@v{self.version}"


@dataclass(frozen=True, slots=True)
class Part:
    """One program: its package, how it is asked for its version, and what is then among its words.

    A program that can't be asked has no `says`: the build information in it is read instead.
    """

    name: str
    package: str
    says: str = ""
    ask: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, slots=True)
class Group:
    """Modules that are built together, and the programs in them."""

    name: str
    modules: tuple[Module, ...]
    parts: tuple[Part, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """Go variables set by the linker: without them programs don't know their version."""
    local: bool = False
    """The source is in this repository, beside the lock files."""

    @property
    def key(self) -> str:
        """Name of the folder in the cache: what must differ when the programs do."""
        versions = "-".join(f"{module.name}-{module.version}" for module in self.modules)
        return f"{versions}-{platform.system()}-{platform.machine()}".lower()

    @property
    def ldflags(self) -> str:
        """Small binaries that know their version."""
        return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self.variables)])

    @property
    def folder(self) -> Path:
        """Where its programs live."""
        return cache_root() / self.key


def cache_root() -> Path:
    """The folder for everything built; `$XDG_CACHE_HOME` moves it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "noctaya" / "parts"


def _kubernetes() -> Group:
    module = Module("kubernetes", "k8s.io/kubernetes", KUBERNETES)
    etcd = Module("etcd", "go.etcd.io/etcd/server/v3", ETCD)
    component, said = "k8s.io/component-base/version", f"Kubernetes v{KUBERNETES}"
    major, minor, _ = KUBERNETES.split(".")
    names = (
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
    )
    return Group(
        name="kubernetes",
        modules=(module, etcd),
        parts=(
            Part("etcd", etcd.path, f"etcd Version: {ETCD}"),
            *(Part(name, f"{module.path}/cmd/{name}", said) for name in names),
            Part(
                "kubectl",
                f"{module.path}/cmd/kubectl",
                f"Client Version: v{KUBERNETES}",
                ("version", "--client"),
            ),
        ),
        # Without these the API server says v0.0.0 and clients take it for an ancient one.
        variables=(
            (f"{component}.gitVersion", f"v{KUBERNETES}"),
            (f"{component}.gitMajor", major),
            (f"{component}.gitMinor", minor),
        ),
    )


def _keda() -> Group:
    module = Module("keda", "github.com/kedacore/keda/v2", KEDA)
    return Group(
        name="keda",
        modules=(module,),
        parts=tuple(
            Part(f"keda-{name}", f"{module.path}/cmd/{name}") for name in ("operator", "adapter", "webhooks")
        ),
        variables=((f"{module.path}/version.Version", KEDA),),
    )


def _alone(
    module: Module,
    *,
    package: str,
    says: str,
    ask: tuple[str, ...] = ("--version",),
    variables: tuple[tuple[str, str], ...] = (),
) -> Group:
    """A group of one program that is named like its module."""
    return Group(
        name=module.name,
        modules=(module,),
        parts=(Part(module.name, f"{module.path}{package}", says, ask),),
        variables=tuple((f"{module.path}{name}", value) for name, value in variables),
    )


GROUPS: Final[tuple[Group, ...]] = (
    _kubernetes(),
    _keda(),
    _alone(
        Module("coredns", "github.com/coredns/coredns", COREDNS),
        package="",
        says=f"CoreDNS-{COREDNS}",
        ask=("-version",),
    ),
    _alone(
        Module("helm", "helm.sh/helm/v3", HELM),
        package="/cmd/helm",
        says=f"v{HELM}",
        ask=("version", "--short"),
        # Without these it takes every cluster that it can't ask for Kubernetes 1.20, and refuses charts.
        variables=(
            ("/internal/version.version", f"v{HELM}"),
            *(
                (f"/pkg/{package}.k8sVersion{name}", value)
                for package in ("chartutil", "lint/rules")
                for name, value in (("Major", "1"), ("Minor", HELM_KUBERNETES_MINOR))
            ),
        ),
    ),
    _alone(
        Module("oras", "oras.land/oras", ORAS),
        package="/cmd/oras",
        says=ORAS,
        ask=("version",),
        variables=(("/internal/version.Version", ORAS),),
    ),
    _alone(
        Module("registry", "github.com/distribution/distribution/v3", REGISTRY),
        package="/cmd/registry",
        says=f"v{REGISTRY}",
        variables=(("/version.version", f"v{REGISTRY}"),),
    ),
    _alone(
        Module("kube-router", "github.com/cloudnativelabs/kube-router/v2", KUBE_ROUTER),
        package="/cmd/kube-router",
        says=f"v{KUBE_ROUTER}",
        variables=(("/pkg/version.Version", f"v{KUBE_ROUTER}"),),
    ),
    Group(
        name="pause",
        modules=(Module("pause", "noctaya.io/pause", PAUSE),),
        parts=(Part("pause", "noctaya.io/pause", f"pause {PAUSE}"),),
        variables=(("main.version", PAUSE),),
        local=True,
    ),
)
PARTS: Final[tuple[str, ...]] = tuple(part.name for group in GROUPS for part in group.parts)
MODULES: Final = {module.name: module for group in GROUPS if not group.local for module in group.modules}


def wanted(names: Iterable[str]) -> list[tuple[Group, list[Part]]]:
    """The parts with these names, by group; each once, in the order of the catalogue. Raises UnknownPart."""
    asked = set(names)
    if unknown := sorted(asked - set(PARTS)):
        raise UnknownPart(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    chosen = ((group, [part for part in group.parts if part.name in asked]) for group in GROUPS)
    return [(group, parts) for group, parts in chosen if parts]
