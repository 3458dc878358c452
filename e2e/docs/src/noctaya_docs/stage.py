"""Where commands of a page are run: a shell in a checkout, and an API server with an operator at work.

The programs are those of this repository, whatever else the machine has: `noctaya` of this environment,
`helm` and `kubectl` as pinned.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import noctaya_parts
from noctaya_apiserver import ApiClient, ControlPlane
from noctaya_apiserver.client import Object, wait_for
from noctaya_apiserver.keda import keda_crds
from noctaya_apiserver.operator_process import OperatorProcess
from noctaya_apiserver.users import User, write_kubeconfig
from noctaya_apiserver.world import stand_ins

from noctaya_docs.pages import REPOSITORY
from noctaya_docs.ways import Way

SYSTEM: Final = "noctaya-system"
ACCOUNT: Final = "noctaya-controller-manager"
SECONDS: Final = 150.0
"""For one command; the slowest waits for a release."""
FOREIGN_KINDS: Final = (
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
    ("cert-manager.io", "v1", "Certificate", "certificates"),
    ("cert-manager.io", "v1", "Issuer", "issuers"),
)
"""Kinds of others that examples use: known to the API server, their contents not checked."""


class CommandFailed(AssertionError):
    """A command ended or spoke otherwise than the page promises; the message has all of it."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command did."""

    code: int
    output: str
    errors: str


class Shell:
    """Runs commands as they stand in a page, in the root of the repository.

    Args:
        folder: for the programs, and as the home of whoever types.
        kubeconfig: of the cluster, if there is one.
        names: words that stand for something in pages - `SERVICE` - and what they stand for.
    """

    def __init__(
        self, folder: Path, *, kubeconfig: Path | None = None, names: Mapping[str, str] | None = None
    ) -> None:
        self._names = dict(names or {})
        programs = folder / "programs"
        programs.mkdir(parents=True)
        for name, target in (
            ("helm", noctaya_parts.ensure("helm")["helm"]),
            ("kubectl", noctaya_parts.ensure("kubectl")["kubectl"]),
        ):
            (programs / name).symlink_to(target)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HELM_", "KUBE", "COLUMNS"))
        }
        self._environment = {
            **kept,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig or folder / "no-cluster"),
            **{
                f"HELM_{name}_HOME": str(folder / f"helm-{name.lower()}")
                for name in ("CACHE", "CONFIG", "DATA")
            },
        }

    def run(self, text: str, *, within: float = SECONDS) -> Ran:
        """Run one command. CommandFailed when it does not end."""
        try:
            done = subprocess.run(
                ["bash", "-c", self.spoken(text)],
                cwd=REPOSITORY,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=within,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(f"{text}\ndid not end within {within:g} s: {error.output!r}") from error
        return Ran(code=done.returncode, output=done.stdout, errors=done.stderr)

    def prove(self, text: str, way: Way) -> Ran:
        """Run one command and hold it to what is promised. Raises CommandFailed."""
        ran = self.run(text)
        said = ran.output + ran.errors
        if ran.code not in way.codes:
            raise CommandFailed(f"{self.spoken(text)}\nended with {ran.code}:\n{said}")
        if way.says and not re.search(way.says, said):
            raise CommandFailed(f"{self.spoken(text)}\ndid not say {way.says!r} but:\n{said}")
        return ran

    def spoken(self, text: str) -> str:
        """The command with names in place of the words that stand for them."""
        for word, name in self._names.items():
            text = re.sub(rf"\b{re.escape(word)}\b", name, text)
        return text


class Stage:
    """An API server that knows KEDA and nothing of ours, until a command installs it. A context manager.

    While the release is there the operator works with the rights of the chart's ServiceAccount.
    """

    def __init__(self, folder: Path, *, names: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._names = names
        self._stack = ExitStack()
        self._operator: OperatorProcess | None = None
        self._starts = 0

    def __enter__(self) -> Stage:
        objects = [*keda_crds(), *map(_foreign_kind, FOREIGN_KINDS)]
        try:
            self._plane = self._stack.enter_context(ControlPlane(self._folder / "plane", objects=objects))
            self._stack.enter_context(stand_ins(self._plane))
        except BaseException:
            self._stack.close()
            raise
        self.api: ApiClient = self._plane.client()
        self.shell = Shell(self._folder, kubeconfig=self._plane.kubeconfig(), names=self._names)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop_operator()
        self._stack.close()

    def prove(self, text: str, way: Way) -> Ran:
        """Run one command and hold it to what is promised; an operator comes and goes with the release."""
        if text.startswith("helm uninstall noctaya "):
            self._stop_operator()
        ran = self.shell.prove(text, way)
        if text.startswith("helm install noctaya "):
            self._start_operator()
        return ran

    def until(self, look: Callable[[], object], *, what: str) -> None:
        """Wait for something of the cluster."""
        wait_for(look, within=60, what=what)

    def _start_operator(self) -> None:
        self.api.wait_for_crds(("llmservices.serving.noctaya.io", "inferenceruntimes.serving.noctaya.io"))
        self._starts += 1
        self._operator = OperatorProcess(
            self._account(),
            self._folder,
            "--leader-elect=true",
            f"--leader-election-namespace={SYSTEM}",
            name=f"operator-{self._starts}",
        ).start()

    def _stop_operator(self) -> None:
        if self._operator is not None:
            self._operator.stop()
            self._operator = None

    def _account(self) -> Path:
        request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
        token = self.api.request("POST", path, request)["status"]["token"]
        file = self._folder / f"operator-{self._starts}.kubeconfig"
        user = User(f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", token=token)
        write_kubeconfig(user, file, server=self._plane.server, ca_file=self._plane.ca_file)
        return file


def _foreign_kind(kind: tuple[str, str, str, str]) -> Object:
    group, version, name, plural = kind
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": name, "plural": plural},
            "scope": "Namespaced",
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
