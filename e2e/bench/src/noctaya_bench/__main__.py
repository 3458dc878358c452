"""`python -m noctaya_bench`: run the measures, print what they found, exit 0 when every promise was reached.

Exit 1: a promise was missed. Exit 2: a tool is missing in CI, or a measure could not be carried out.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from .lab import Lab
from .measures import (
    d1_prewarm,
    o1_operator_scale,
    p1_json_cost,
    p2_stream_cost,
    p3_added_latency,
    p4_held_streams,
    p5_start_memory,
    p6_endurance,
    p7_bad_clients,
    p8_stream_growth,
    p9_wake_latency,
    p10_aggregate_scaler,
)
from .report import by_section, render_finding, render_report, write_document
from .tools import Tools, find_tools
from .verdicts import Finding, Verdict
from .versions import collect_versions


async def _cold_starts(lab: Lab) -> Finding:
    from .measures import c1_cold_start  # noqa: PLC0415 - with packages that the other measures do without

    return await c1_cold_start.measure(lab)


MEASURES: dict[str, Callable[[Lab], Awaitable[Finding]]] = {
    "P1": p1_json_cost.measure,
    "P2": p2_stream_cost.measure,
    "P3": p3_added_latency.measure,
    "P4": p4_held_streams.measure,
    "P5": p5_start_memory.measure,
    "P6": p6_endurance.measure,
    "P7": p7_bad_clients.measure,
    "P8": p8_stream_growth.measure,
    "P9": p9_wake_latency.measure,
    "P10": p10_aggregate_scaler.measure,
    "O1": o1_operator_scale.measure,
    "D1": d1_prewarm.measure,
    "C1": _cold_starts,
}
SUBJECTS: dict[str, str] = {"gateway": "P", "operator": "O", "prewarm": "D", "cluster": "C"}
"""First letter of the measures of a subject."""
BY_DEFAULT = tuple(name for name in MEASURES if not name.startswith(SUBJECTS["cluster"]))
"""A cluster takes root, minutes and memory: one asks for it by name."""
NEED_WRK = frozenset({"P1", "P3", "P6"})


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse_arguments(argv)
    tools = find_tools()
    if tools.missing and any(name.startswith(SUBJECTS["gateway"]) for name in options.only):
        print(f"not installed, so left out: {', '.join(tools.missing)}", file=sys.stderr)
        if os.environ.get("CI") == "true":
            return 2
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    versions = collect_versions(tools)
    with tempfile.TemporaryDirectory(prefix="noctaya-bench-") as directory:
        findings = uvloop.run(
            run_measures(options.only, tools, directory=Path(directory), quick=options.quick)
        )
    for section, found in by_section(findings).items():
        report = render_report(found, versions, when=datetime.now(UTC), quick=options.quick)
        if options.write is not None:
            write_document(options.write, report, section=section)
    print_verdicts(findings)
    return exit_code(findings)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """A subject, --quick, --only and --write."""
    parser = argparse.ArgumentParser(prog="noctaya_bench", description=__doc__)
    parser.add_argument("subject", nargs="?", choices=tuple(SUBJECTS), help="default: all but cluster")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer rounds (under 4 minutes)")
    parser.add_argument("--only", type=measure_names, metavar="P1,P2", help="instead of a subject")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this document")
    options = parser.parse_args(argv)
    if options.only is None:
        options.only = measures_of(options.subject)
    elif options.subject is not None:
        parser.error("either a subject or --only")
    return options


def measures_of(subject: str | None) -> tuple[str, ...]:
    """The measures of a subject, or those that are run when none is given."""
    if subject is None:
        return BY_DEFAULT
    return tuple(name for name in MEASURES if name.startswith(SUBJECTS[subject]))


def measure_names(text: str) -> tuple[str, ...]:
    """The names in a comma separated list; ValueError (argparse's way) for one that does not exist."""
    names = tuple(name.strip().upper() for name in text.split(","))
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    return names


async def run_measures(names: Sequence[str], tools: Tools, *, directory: Path, quick: bool) -> list[Finding]:
    """One after the other, each in a lab of its own; a measure that fails is a finding, not the end."""
    findings = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        begun = time.monotonic()
        finding = await run_one(name, tools, directory=directory / name, quick=quick)
        finding.seconds = time.monotonic() - begun
        findings.append(finding)
        print(f"\n{render_finding(finding)}\n", flush=True)
    return findings


async def run_one(name: str, tools: Tools, *, directory: Path, quick: bool) -> Finding:
    """Run one measure."""
    if name in NEED_WRK and tools.wrk is None:
        return failed(name, "wrk is not installed")
    try:
        async with Lab(directory=directory, tools=tools, quick=quick) as lab:
            return await MEASURES[name](lab)
    except Exception as error:  # noqa: BLE001 - whatever a measure raises, the others are still to be measured
        traceback.print_exc()
        return failed(name, f"{type(error).__name__}: {error}".replace("|", "/").replace("\n", " "))


def failed(name: str, reason: str) -> Finding:
    """The finding of a measure that was not carried out."""
    verdict = Verdict(promise="measure", measured=reason, reached=None)
    return Finding(measure=name, title="Not measured", columns=("why",), rows=[(reason,)], verdicts=[verdict])


def print_verdicts(findings: Sequence[Finding]) -> None:
    """The promises in lines for a terminal."""
    for finding in findings:
        for verdict in finding.verdicts:
            print(f"{finding.measure:<4} {verdict.word:<12} {verdict.promise}: {verdict.measured}")
    print(f"took {sum(finding.seconds for finding in findings):.0f} s")


def exit_code(findings: Sequence[Finding]) -> int:
    """See the module."""
    reached = [verdict.reached for finding in findings for verdict in finding.verdicts]
    if any(one is False for one in reached):
        return 1
    return 2 if any(one is None for one in reached) and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
