"""`python -m noctaya_chaos.soak`: half an hour of steady mixed load; memory, files and latency stay flat.

Prints each component's series with its slope an hour. Exit 0: all flat, nothing failed, nothing restarted.
1: something grew, failed or restarted. 2: bad arguments, or no cluster whose processes are on this machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noctaya_cluster import ClusterError
from noctaya_scenarios.faults import Process, processes_of
from noctaya_scenarios.release import NAMESPACE, OPERATOR_LABELS

from noctaya_chaos.field import WARM, Field
from noctaya_chaos.ground import add_options, prepared
from noctaya_chaos.load import OK, MixedLoad, Outcome
from noctaya_chaos.trend import Bound, Trend, trend_of

MINUTES: Final = 30.0
FEWEST_MINUTES: Final = 2.0
EVERY: Final = 5.0
MIB: Final = 1 << 20
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
BOUNDS: Final = {
    "MiB": Bound(absolute=2.0, share=0.03),
    "files": Bound(absolute=3.0),
    "ms": Bound(absolute=2.0, share=0.25),
}
"""Open files move with the connections of the moment; latency with the other load of the machine."""

Series = dict[tuple[str, str], list[tuple[float, float]]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One series."""

    what: str
    unit: str
    trend: Trend

    @property
    def flat(self) -> bool:
        """Whether it stays within its bound."""
        return self.trend.flat(BOUNDS[self.unit])

    def __str__(self) -> str:
        trend = self.trend
        word = "flat" if self.flat else "GROWS"
        return (
            f"{self.what:40} {trend.early:8.1f} -> {trend.late:8.1f} {self.unit:5} "
            f"{trend.hourly:+8.2f} an hour  {word}"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse(argv)
    try:
        with prepared("soak", options) as field:
            findings, failures = soak(field, seconds=options.minutes * 60)
    except ClusterError as error:
        print(f"noctaya-soak: the cluster is not to be had: {error}", file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    for failure in failures:
        print(f"! {failure}")
    return 0 if not failures and all(finding.flat for finding in findings) else 1


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(prog="noctaya-soak", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"at least {FEWEST_MINUTES:g}")
    add_options(parser)
    options = parser.parse_args(argv)
    if not options.minutes >= FEWEST_MINUTES:
        parser.error(f"--minutes must be at least {FEWEST_MINUTES:g}: less shows nothing")
    return options


def soak(field: Field, *, seconds: float) -> tuple[list[Finding], list[str]]:
    """Load for so long; what grew how much, and what went wrong."""
    warm, cold = field.prepare()
    failures: list[str] = []
    series: Series = defaultdict(list)
    with MixedLoad(warm, cold, asleep=field.asleep) as load:
        warm.ask()
        running = {name: processes_of(pod) for name, pod in components(field).items()}
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + seconds and not failures:
            failures = [f"{name} restarted" for name, processes in running.items() if not alive(processes)]
            for name, processes in running.items() if not failures else ():
                memory, files = usage(processes)
                series[f"{name} memory", "MiB"].append((now - begun, memory / MIB))
                series[f"{name} open files", "files"].append((now - begun, files))
            time.sleep(EVERY)
        outcomes = load.since(begun)
    for kind in ("json", "cold"):
        series[f"{kind} latency", "ms"] = latencies(outcomes, kind, begun=begun)
    failed = Counter((each.kind, each.result) for each in outcomes if each.result != OK)
    failures += [f"{count} {kind}: {result}" for (kind, result), count in sorted(failed.items())]
    counts = Counter(each.kind for each in outcomes)
    said = f"{counts['json']} answers, {counts['stream']} streams, {counts['cold']} cold starts"
    print(f"{(time.monotonic() - begun) / 60:.0f} minutes: {said}")
    findings = [Finding(what=what, unit=unit, trend=trend_of(each)) for (what, unit), each in series.items()]
    return findings, failures


def components(field: Field) -> Mapping[str, str]:
    """Our Pods that have to live through it, by what they are called in the output."""
    found = {f"gateway {index}": pod for index, pod in enumerate(field.scene.ready_pods("gateway", WARM), 1)}
    found["aggregate scaler"] = field.first("scaler")
    leader = field.leader()
    for pod in field.pods_of(NAMESPACE, OPERATOR_LABELS):
        name = str(pod["metadata"]["name"])
        found["operator (leads)" if name == leader else "operator (stands by)"] = name
    return found


def alive(processes: Sequence[Process]) -> bool:
    """Whether all of them still run."""
    return all((Path("/proc") / str(process.pid)).exists() for process in processes)


def usage(processes: Sequence[Process]) -> tuple[int, int]:
    """Resident bytes and open files of processes together."""
    memory = files = 0
    for process in processes:
        folder = Path("/proc") / str(process.pid)
        memory += int((folder / "statm").read_text().split()[1]) * PAGE
        files += sum(1 for _ in (folder / "fd").iterdir())
    return memory, files


def latencies(outcomes: Sequence[Outcome], kind: str, *, begun: float) -> list[tuple[float, float]]:
    """(seconds, milliseconds) of the answers of a kind."""
    return [
        (each.begun - begun, each.seconds * 1000)
        for each in outcomes
        if each.kind == kind and each.result == OK and each.begun >= begun
    ]


if __name__ == "__main__":
    sys.exit(main())
