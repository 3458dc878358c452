"""`python -m noctaya_chaos.soak`: half an hour of steady mixed load; memory, files and latency stay flat.

Prints each component's series with its slope an hour; Ctrl-C ends it with what was seen so far. Exit 0: all
flat, nothing failed, nothing restarted. 1: something grew, failed or restarted, or it was cut short. 2: bad
arguments, no cluster whose processes are on this machine, or no page to write to.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from noctaya_cluster import ClusterError
from noctaya_scenarios.faults import Process, processes_of
from noctaya_scenarios.release import NAMESPACE, OPERATOR_LABELS

from noctaya_chaos.account import BEGIN, END, FILES, LATENCY, MEMORY, REFERENCE, Account
from noctaya_chaos.field import WARM, Field
from noctaya_chaos.ground import add_options, prepared
from noctaya_chaos.load import OK, MixedLoad, Outcome
from noctaya_chaos.report import NoMarks, between, write

MINUTES: Final = 30.0
FEWEST_MINUTES: Final = 2.0
EVERY: Final = 5.0
MIB: Final = 1 << 20
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
USAGE_ERROR: Final = 2

Recorded = dict[tuple[str, str], list[tuple[float, float]]]


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse(argv)
    try:
        with prepared("soak", options) as field:
            account = soak(field, seconds=options.minutes * 60)
            tell(account)
    except ClusterError as error:
        print(f"noctaya-soak: the cluster is not to be had: {error}", file=sys.stderr)
        return USAGE_ERROR
    if options.write:
        write(options.write, account.markdown(datetime.now(UTC).date()), BEGIN, END)
    return 0 if account.held else 1


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments."""
    parser = argparse.ArgumentParser(prog="noctaya-soak", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"at least {FEWEST_MINUTES:g}")
    add_options(parser)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into docs/reliability.md")
    options = parser.parse_args(argv)
    if not options.minutes >= FEWEST_MINUTES:
        parser.error(f"--minutes must be at least {FEWEST_MINUTES:g}: less shows nothing")
    if options.write:
        try:
            between(options.write, BEGIN, END)  # now, not in half an hour
        except (OSError, NoMarks) as error:
            parser.error(str(error))
    return options


def tell(account: Account) -> None:
    """On the terminal."""
    print(account.summary)
    for finding in account.findings:
        print(finding)
    for failure in account.failures:
        print(f"! {failure}")
    sys.stdout.flush()


def soak(field: Field, *, seconds: float, every: float = EVERY) -> Account:
    """Load for so long, or until something restarts or somebody presses Ctrl-C: what was seen.

    Args:
        field: where.
        seconds: of load.
        every: seconds between samples.
    """
    warm, cold = field.prepare()
    series: Recorded = defaultdict(list)
    loads: list[float] = []
    broken: list[str] = []
    with MixedLoad(warm, cold, asleep=field.asleep) as load:
        warm.ask()
        backend = field.backend()
        running = {name: processes_of(pod) for name, pod in components(field).items()}
        begun = time.monotonic()
        try:
            while time.monotonic() < begun + seconds and not broken:
                at = time.monotonic() - begun
                broken = sample(running, series, at=at)
                try:
                    series[REFERENCE, LATENCY].append((at, backend.ask(tokens=2).seconds * 1000))
                except (OSError, http.client.HTTPException) as error:
                    broken.append(f"the backend does not answer: {error!r}")
                loads.append(os.getloadavg()[0])
                time.sleep(every)
        except KeyboardInterrupt:
            print("noctaya-soak: cut short", file=sys.stderr, flush=True)
        minutes = (time.monotonic() - begun) / 60
        outcomes = [each for each in load.since(begun) if each.begun >= begun]
    for kind in ("json", "cold"):
        series[f"{kind} latency", LATENCY] = latencies(outcomes, kind, begun=begun)
    return Account(
        minutes=minutes,
        planned=seconds / 60,
        outcomes=outcomes,
        series=series,
        loads=loads,
        processors=os.cpu_count() or 1,
        broken=broken,
    )


def components(field: Field) -> Mapping[str, str]:
    """Our Pods that have to live through it, by what they are called in the output."""
    found = {f"gateway {index}": pod for index, pod in enumerate(field.scene.ready_pods("gateway", WARM), 1)}
    found["aggregate scaler"] = field.first("scaler")
    leader = field.leader()
    for pod in field.pods_of(NAMESPACE, OPERATOR_LABELS):
        name = str(pod["metadata"]["name"])
        found["operator (leads)" if name == leader else "operator (stands by)"] = name
    return found


def sample(running: Mapping[str, Sequence[Process]], series: Recorded, *, at: float) -> list[str]:
    """Add what components use to their series; those that restarted since, in words."""
    broken = []
    for name, processes in running.items():
        try:
            memory, files = usage(processes)
        except (FileNotFoundError, ProcessLookupError):
            broken.append(f"{name} restarted")
            continue
        series[f"{name} memory", MEMORY].append((at, memory / MIB))
        series[f"{name} open files", FILES].append((at, files))
    return broken


def usage(processes: Sequence[Process]) -> tuple[int, int]:
    """Resident bytes and open files of processes together. FileNotFoundError when one has ended."""
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
