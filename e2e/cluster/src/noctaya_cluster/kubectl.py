"""kubectl against one cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .commands import Run, must, run_command

Object = dict[str, Any]


class Kubectl:
    """Runs kubectl with a kubeconfig.

    Args:
        program: kubectl.
        kubeconfig: which cluster; None for none.
        run: runs commands.
    """

    def __init__(self, program: str | Path, kubeconfig: Path | None, *, run: Run = run_command) -> None:
        options = [] if kubeconfig is None else [f"--kubeconfig={kubeconfig}"]
        self.prefix = (str(program), *options)
        self._run = run

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 300.0) -> str:
        """Its output. Raises ClusterError with what it said."""
        return must(self._run, [*self.prefix, *arguments], stdin=stdin, timeout=timeout)

    def attempt(
        self, *arguments: str, stdin: str | None = None, timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """Run it, whatever comes of it. Raises ClusterError after `timeout` seconds."""
        return self._run([*self.prefix, *arguments], stdin=stdin, timeout=timeout)

    def get(self, *arguments: str) -> Object:
        """`kubectl get` as an object."""
        found: Object = json.loads(self.run("get", *arguments, "-o", "json"))
        return found

    def items(self, *arguments: str) -> list[Object]:
        """`kubectl get` of a kind."""
        found: list[Object] = self.get(*arguments)["items"]
        return found

    def apply(self, objects: Iterable[Mapping[str, Any]], *, manager: str = "noctaya-cluster") -> None:
        """Server-side apply, by force."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        options = ("--server-side", "--force-conflicts", f"--field-manager={manager}")
        self.run("apply", *options, "-f", "-", stdin=document)
