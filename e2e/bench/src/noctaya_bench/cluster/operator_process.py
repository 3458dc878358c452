"""The operator as a child process, and what it says of itself."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from .. import procfs
from ..calls import call
from ..children import Child, free_port
from ..lab import Lab
from ..patience import until

QUEUE = "llmservice"
QUIET_SECONDS = 3.0
"""An operator is idle when it reconciled nothing for so long and nothing waits."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much it has done and has to do."""

    reconciles: int
    waiting: int
    failures: int


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """One running operator."""

    child: Child
    health_port: int
    metrics_port: int

    @property
    def rss_bytes(self) -> int:
        return procfs.rss_bytes((self.child.pid,))

    @property
    def peak_rss_bytes(self) -> int:
        return procfs.peak_rss_bytes(self.child.pid)

    @property
    def cpu_seconds(self) -> float:
        return procfs.cpu_seconds((self.child.pid,))

    async def progress(self) -> Progress:
        """From its metrics."""
        _, body = await call(self.metrics_port, "/metrics")
        return read_progress(body.decode())

    async def ready(self, *, within: float = 60.0) -> None:
        """Return once its caches hold the cluster."""

        async def is_ready() -> bool:
            return (await call(self.health_port, "/readyz"))[0] == 200

        await until(is_ready, within=within, every=0.05)

    async def idle(self, *, within: float, quiet: float = QUIET_SECONDS, at_least: int = 0) -> float:
        """Wait until it has nothing to do after `at_least` reconciles; seconds since it had, about `quiet`.

        Raises TimeoutError.
        """
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(within):
            seen, since = await self.progress(), clock()
            while clock() - since < quiet or seen.waiting or seen.reconciles < at_least:
                await asyncio.sleep(0.2)
                now = await self.progress()
                if now.reconciles != seen.reconciles or now.waiting:
                    since = clock()
                seen = now
            return clock() - since


async def start_operator(lab: Lab, kubeconfig: Path) -> OperatorProcess:
    """Start it and return when it listens."""
    health, metrics = free_port(), free_port()
    command = [
        str(Path(sys.executable).with_name("noctaya-operator")),
        f"--kubeconfig={kubeconfig}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        "--leader-elect",
        "--leader-election-namespace=default",
    ]
    child = await lab.start("operator", command)
    await child.listening(health)
    await child.listening(metrics)
    return OperatorProcess(child=child, health_port=health, metrics_port=metrics)


def read_progress(text: str) -> Progress:
    """From the text of `/metrics`."""
    totals = {"reconciles": 0, "waiting": 0, "failures": 0}
    wanted = {
        "controller_runtime_reconcile_total": "reconciles",
        "workqueue_depth": "waiting",
        "controller_runtime_active_workers": "waiting",
        "controller_runtime_reconcile_errors_total": "failures",
    }
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in wanted and sample.labels.get("controller") == QUEUE:
                totals[wanted[sample.name]] += int(sample.value)
    return Progress(**totals)
