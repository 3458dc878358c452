"""helm as a function: arguments in, objects or a fault out, with nothing of the user's own configuration.

Rendering needs no cluster; whatever talks to one is told which by a kubeconfig.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

Object = dict[str, Any]
TIMEOUT: Final = 300.0
"""Seconds for one call; the slowest, an installation that waits, has its own in `--timeout`."""


class HelmFault(Exception):
    """helm refused; the message is what it said."""


class Helm:
    """One helm. `binary` is the program, `home` a folder for its caches, `kubeconfig` its cluster if any."""

    def __init__(self, binary: Path, *, home: Path, kubeconfig: Path | None = None) -> None:
        self._binary = binary
        self._home = home
        self._kubeconfig = kubeconfig

    def at(self, kubeconfig: Path) -> Helm:
        """The same helm with a cluster."""
        return Helm(self._binary, home=self._home, kubeconfig=kubeconfig)

    def run(self, *arguments: str | Path, values: Mapping[str, Any] | None = None) -> str:
        """Standard output of one call, with `values` as a file of values. Raises HelmFault."""
        given = ["--values", "-"] if values is not None else []
        done = subprocess.run(
            [self._binary, *arguments, *given],
            input=json.dumps(values) if values is not None else "",
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        if done.returncode:
            raise HelmFault(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def template(
        self,
        chart: Path,
        values: Mapping[str, Any] | None = None,
        *,
        release: str = "noctaya",
        namespace: str = "noctaya-system",
        flags: tuple[str, ...] = (),
    ) -> list[Object]:
        """Every object that the chart renders. Raises HelmFault."""
        text = self.run("template", release, chart, "--namespace", namespace, *flags, values=values or {})
        return [each for each in yaml.safe_load_all(text) if each is not None]

    def _environment(self) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
        found |= {f"HELM_{name}_HOME": str(self._home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        # A kubeconfig that is not there is an empty one: no cluster by accident.
        found["KUBECONFIG"] = str(self._kubeconfig or self._home / "no-cluster")
        return found
