"""O1: the operator with 1,000 services: convergence, rest, a runtime that half of them use, a restart.

Requests are counted by the API server's audit log, so no claim rests on the operator's own word.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from noctaya_parts.versions import KUBERNETES

from ..cluster.api import Api
from ..cluster.convergence import (
    DEPLOYMENTS,
    RUNTIME_LABEL,
    SERVICES,
    ReconcileProbe,
    converged,
    expecting,
    runs_image,
)
from ..cluster.operator_process import OperatorProcess, start_operator
from ..cluster.population import (
    CHANGED_RUNTIME,
    NOCTAYA,
    OTHER_RUNTIME,
    Member,
    create_runtimes_and_namespaces,
    create_services,
    members,
)
from ..cluster.requests import Requests, most
from ..cluster.running import Cluster, running_cluster
from ..cluster.stand_ins import stand_ins
from ..figures import percentile
from ..lab import Lab
from ..verdicts import Finding, Verdict, at_most

WRITES_LIMIT = 12.0
STEADY_REQUESTS_LIMIT = 1.0
RSS_LIMIT_MB = 250.0
LATENCY_LIMIT_SECONDS = 1.0
PATIENCE_SECONDS = 1500.0
PAUSE_SECONDS = 0.1
NEW_IMAGE = "example.com/vllm:2"
COLUMNS = ("stage", "seconds", "writes", "reads", "watches", "CPU s", "RSS MB", "notes")


@dataclass(slots=True)
class Stage:
    """One row: what the operator did and took in it."""

    name: str
    seconds: float
    requests: Requests
    cpu: float
    rss: int
    notes: str = ""

    def row(self) -> tuple[str, ...]:
        requests = self.requests
        return (
            self.name,
            f"{self.seconds:.1f}",
            f"{requests.written:,}",
            f"{requests.read:,}",
            str(requests.watches),
            f"{self.cpu:.1f}",
            f"{self.rss / 2**20:.0f}",
            self.notes,
        )


class Stages:
    """Takes the operator's figures between two calls of `end`."""

    def __init__(self, cluster: Cluster, operator: OperatorProcess) -> None:
        self._cluster = cluster
        self._operator = operator
        self.rows: list[Stage] = []
        self._cpu = operator.cpu_seconds
        cluster.new_requests()

    def end(self, name: str, seconds: float) -> Stage:
        """Close a stage that took so long."""
        cpu = self._operator.cpu_seconds
        stage = Stage(name, seconds, self._cluster.new_requests(), cpu - self._cpu, self._operator.rss_bytes)
        self._cpu = cpu
        self.rows.append(stage)
        return stage


async def measure(lab: Lab) -> Finding:
    """All stages on one control plane."""
    population = members(lab.pick(quick=200, full=1000))
    finding = Finding(
        measure="O1",
        title=f"Operator: {len(population):,} services, one gateway each, Kubernetes {KUBERNETES}",
        columns=COLUMNS,
    )
    async with running_cluster(lab) as cluster:
        await create_runtimes_and_namespaces(cluster.api)
        operator = await start_operator(lab, cluster.plane.kubeconfig("operator"))
        await operator.ready()
        async with stand_ins(cluster.api):
            await warm_up(cluster.api)
            await operator.idle(within=PATIENCE_SECONDS)
            stages = Stages(cluster, operator)
            finding.verdicts += await converge(cluster.api, operator, stages, population)
            finding.verdicts += await rest(operator, stages, seconds=lab.pick(quick=20, full=60))
            finding.verdicts += await change_runtime(cluster.api, operator, stages, population)
            peak = operator.peak_rss_bytes / 2**20
            await operator.child.stop()
            restarted, again, verdict = await restart(lab, cluster, len(population))
            finding.verdicts.append(verdict)
    promise = f"RSS <= {RSS_LIMIT_MB:g} MB at its highest"
    told = f"{peak:.0f} MB, {again:.0f} MB after the restart"
    finding.verdicts.append(at_most(promise, max(peak, again), RSS_LIMIT_MB, told))
    finding.rows += [stage.row() for stage in (*stages.rows, restarted)]
    return finding


async def warm_up(api: Api) -> None:
    """One service ahead of all others shows that Kubernetes' controllers have started."""
    member = Member(namespace="team-0", name="ahead-of-others", runtime=OTHER_RUNTIME)
    async with expecting(api, SERVICES, converged, count=1) as done, asyncio.timeout(PATIENCE_SECONDS):
        await create_services(api, [member])
        await done


async def converge(
    api: Api, operator: OperatorProcess, stages: Stages, population: list[Member]
) -> list[Verdict]:
    """All services appear at once."""
    count, begun = len(population), time.monotonic()
    async with (
        expecting(api, SERVICES, converged, count=count + 1) as done,  # with the one ahead of them
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await create_services(api, population)
        seconds = await done - begun
    await operator.idle(within=PATIENCE_SECONDS)
    stage = stages.end("first convergence", seconds)
    writes = stage.requests.written / count
    stage.notes = (
        f"a service: {writes:.2f} writes ({most(stage.requests.writes, count)}); "
        f"{stage.requests.read / count:.2f} reads ({most(stage.requests.reads, count)})"
    )
    return [
        at_most(
            f"first convergence takes <= {WRITES_LIMIT:g} writes a service",
            writes,
            WRITES_LIMIT,
            f"{writes:.2f}",
        )
    ]


async def rest(operator: OperatorProcess, stages: Stages, *, seconds: int) -> list[Verdict]:
    """Nothing happens."""
    await asyncio.sleep(seconds)
    stage = stages.end("steady state", seconds)
    rate = stage.requests.besides_watches / seconds
    stage.notes = f"{stage.requests.lease} requests for the Lease"
    written = stage.requests.written
    return [
        at_most("steady state writes nothing but the Lease", written, 0, f"{written} writes"),
        at_most(
            f"steady state asks < {STEADY_REQUESTS_LIMIT:g} request/s besides watches, the Lease included",
            rate,
            STEADY_REQUESTS_LIMIT,
            f"{rate:.2f}",
        ),
    ]


async def change_runtime(
    api: Api, operator: OperatorProcess, stages: Stages, population: list[Member]
) -> list[Verdict]:
    """One runtime gets another image; meanwhile a service on another runtime is changed again and again."""
    users = [member for member in population if member.runtime == CHANGED_RUNTIME]
    stranger = next(member for member in population if member.runtime == OTHER_RUNTIME)
    async with ReconcileProbe(api, stranger) as probe:
        alone = [await probe.once() for _ in range(20)]
        await operator.idle(within=PATIENCE_SECONDS)
        stages.end("an unrelated service changed 20 times", sum(alone)).notes = described(alone)
        begun, meanwhile = time.monotonic(), list[float]()
        selector = {"labelSelector": f"{RUNTIME_LABEL}={CHANGED_RUNTIME}"}
        has_it = runs_image(NEW_IMAGE)
        async with (
            expecting(api, DEPLOYMENTS, has_it, count=len(users), **selector) as done,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            image = {"spec": {"container": {"image": NEW_IMAGE}}}
            await api.merge(f"{NOCTAYA}/inferenceruntimes/{CHANGED_RUNTIME}", image)
            while not done.done():
                meanwhile.append(await probe.once())
                await asyncio.wait([done], timeout=PAUSE_SECONDS)
            seconds = done.result() - begun
    await operator.idle(within=PATIENCE_SECONDS)
    stage = stages.end(f"runtime of {len(users)} services changed", seconds)
    changes = most(stage.requests.writes, len(users))
    stage.notes = f"a service: {changes}; the unrelated one meanwhile: {described(meanwhile)}"
    longest = max(meanwhile)
    return [
        at_most(
            f"a runtime of {len(users)} services rolls through, an unrelated service waits < "
            f"{LATENCY_LIMIT_SECONDS:g} s",
            longest,
            LATENCY_LIMIT_SECONDS,
            f"{longest:.2f} s at most in {len(meanwhile)} changes",
        )
    ]


async def restart(lab: Lab, cluster: Cluster, count: int) -> tuple[Stage, float, Verdict]:
    """A new process finds everything in order; its row, its highest RSS in MB, its promise."""
    cluster.new_requests()
    begun = time.monotonic()
    operator = await start_operator(lab, cluster.plane.kubeconfig("operator"))
    await operator.ready()
    quiet = await operator.idle(within=PATIENCE_SECONDS, at_least=count)
    seconds = time.monotonic() - begun - quiet
    requests = cluster.new_requests()
    stage = Stage("restart", seconds, requests, operator.cpu_seconds, operator.rss_bytes)
    peak = operator.peak_rss_bytes / 2**20
    await operator.child.stop()
    stage.notes = f"until every service was looked at; reads: {most(requests.reads, count)} a service"
    verdict = at_most(
        "a restarted operator writes nothing but the Lease", requests.written, 0, f"{requests.written} writes"
    )
    return stage, peak, verdict


def described(latencies: list[float]) -> str:
    """Median and maximum in milliseconds."""
    return f"p50 {percentile(latencies, 50) * 1000:.0f} ms, max {max(latencies) * 1000:.0f} ms"
