"""`noctaya-operator` as a process of its own, as a stranger starts it: flags, KUBECONFIG, nothing else."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from .child import Child, ChildFailed
from .client import wait_for
from .ports import free_ports

PROGRAM: Final = "noctaya-operator"
START_SECONDS: Final = 60.0
PORT_TRIES: Final = 3


class OperatorProcess:
    """One running operator.

    Args:
        kubeconfig: of the user it acts as.
        folder: for its log.
        flags: further flags.
        name: of the log file.
    """

    def __init__(self, kubeconfig: Path, folder: Path, *flags: str, name: str = "operator") -> None:
        self.log = folder / f"{name}.log"
        self._name = name
        self._kubeconfig = kubeconfig
        self._flags = flags
        self._child: Child | None = None
        self._health = self._metrics = 0

    @property
    def child(self) -> Child:
        """The process."""
        assert self._child is not None, "it was not started"
        return self._child

    @property
    def metrics_address(self) -> str:
        """Where /metrics is: `host:port`, another one after each start."""
        return f"127.0.0.1:{self._metrics}"

    def start(self, *, ready: bool = True) -> OperatorProcess:
        """Start it and, unless not `ready`, return once /readyz is 200. Raises ChildFailed."""
        for _ in range(PORT_TRIES):
            self._health, self._metrics = free_ports(2)
            self._child = Child(
                self._name,
                [
                    operator_program(),
                    f"--health-probe-bind-address=127.0.0.1:{self._health}",
                    f"--metrics-bind-address=127.0.0.1:{self._metrics}",
                    *self._flags,
                ],
                log=self.log,
                env={"KUBECONFIG": str(self._kubeconfig)},
            )
            wait_for(self._up_or_ended, within=START_SECONDS, what=f"/healthz of {self._name}")
            if self._child.running:
                break
            if "in use" not in self._child.output():
                self._child.check_running()
        if ready:
            wait_for(self.ready, within=START_SECONDS, what=f"/readyz of {self._name}")
        return self

    def stop(self, *, grace: float = 15.0) -> int:
        """SIGTERM; returns the exit code."""
        return self.child.stop(grace=grace)

    def kill(self) -> None:
        """SIGKILL."""
        self.child.kill()

    def ready(self) -> bool:
        """Whether /readyz is 200. ChildFailed when the process has ended."""
        self.child.check_running()
        return self._status("/readyz") == 200

    def metric(self, name: str, **labels: str) -> float:
        """A metric's value, summed over the label sets that have these labels; 0 when there is none."""
        total = 0.0
        for line in self.metrics().splitlines():
            series, _, value = line.rpartition(" ")
            metric, _, rest = series.partition("{")
            if metric == name and all(f'{key}="{wanted}"' in rest for key, wanted in labels.items()):
                total += float(value)
        return total

    def metrics(self) -> str:
        """Text of /metrics."""
        return httpx.get(f"http://{self.metrics_address}/metrics", trust_env=False).text

    def records(self) -> Iterator[dict[str, Any]]:
        """Its log records."""
        for line in self.child.output().splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def _up_or_ended(self) -> bool:
        return not self.child.running or self._status("/healthz") == 200

    def _status(self, path: str) -> int:
        try:
            return httpx.get(f"http://127.0.0.1:{self._health}{path}", trust_env=False).status_code
        except httpx.TransportError:
            return 0


def operator_program() -> str:
    """The command beside the Python that runs us, or on PATH. ChildFailed when it is not installed."""
    beside = Path(sys.executable).with_name(PROGRAM)
    found = str(beside) if beside.exists() else shutil.which(PROGRAM)
    if found is None:
        raise ChildFailed(f"{PROGRAM} is not installed")
    return found
