"""`python -m noctaya_scenarios`: all scenarios, in phases, on a cluster that is brought up for them.

Phases are runs of pytest one after the other: what installs and removes the operator, then everything that
can share the cluster in parallel with two gateways a service, then what disturbs the whole cluster, in turns
(noctaya_scenarios.turns), then what also has to hold with one gateway. Arguments that are not ours go to
pytest (`-k drain`).

A scenario that failed is tried once more, alone: time on a shared machine is not ours to command. One that
passes then is named in the summary as unsteady, with why it failed at first; everything about that stays in
the reports.

The summary names the scenarios that took longest; how long each took is in `junit.xml` among the reports.

Exit 0: everything passed, or no cluster can be had and that was said. 1: a scenario failed, none matched,
or no cluster can be had and `CI=true`, so that no release rests on scenarios that nobody ran.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from noctaya_cluster import Cluster, ClusterError, choose_provider

from noctaya_scenarios import durations, failures
from noctaya_scenarios.durations import Duration
from noctaya_scenarios.failures import Failure
from noctaya_scenarios.lab import open_lab, state_folder

TESTS: Final = Path(__file__).parents[2] / "tests"
NOTHING_COLLECTED: Final = 5
FAILED: Final = 1


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One run of pytest."""

    name: str
    marks: str
    gateways: int
    side_by_side: int
    """How many scenarios run at the same time at most."""
    disturbs: bool
    """Whether it takes away or breaks what others on the cluster may rely on."""


UNUSED_PLUGINS: Final = ("hypothesispytest", "schemathesis", "anyio", "looptime", "pytest_cov")
"""Of pytest, installed for others: some 2 s of CPU in every process of every phase."""

GOAL_SECONDS: Final = 25 * 60
"""For all phases and the cluster itself, on two cores with everything built."""

PHASES: Final = (
    Phase(name="first", marks="first", gateways=2, side_by_side=1, disturbs=True),
    Phase(
        name="together",
        marks="not first and not last and not one_gateway",
        gateways=2,
        side_by_side=4,  # busy with two cores; more would only make each other slow
        disturbs=False,
    ),
    Phase(name="last", marks="last", gateways=2, side_by_side=3, disturbs=True),
    Phase(
        name="one-gateway",
        marks="(any_gateways or one_gateway) and not first and not last",
        gateways=1,
        side_by_side=5,  # two Pods a service instead of four
        disturbs=False,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a phase ended."""

    phase: Phase
    code: int
    seconds: float
    prepared: float = 0.0
    """Seconds of that until the first scenario: cluster, images, release."""
    unsteady: tuple[str, ...] = ()
    """Scenarios that passed at the second try only."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Why scenarios failed, by name: at the last try, at the first if they passed then."""
    durations: tuple[Duration, ...] = ()
    """How long each took at the first try."""

    @property
    def ran(self) -> bool:
        """Whether it had any scenario."""
        return self.code != NOTHING_COLLECTED

    @property
    def word(self) -> str:
        """For the summary."""
        return {0: "passed", NOTHING_COLLECTED: "nothing to run"}.get(self.code, f"failed ({self.code})")


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options, rest = parse_arguments(argv)
    begun = time.monotonic()
    try:
        cluster = choose_provider(options.cluster, confirmed=options.yes_use_this_cluster)
        found = is_up(cluster)
        cluster.start()
    except ClusterError as error:
        print(f"noctaya-scenarios: no cluster, so nothing was run: {error}", file=sys.stderr)
        return FAILED if os.environ.get("CI", "").lower() == "true" else 0
    try:
        outcomes = [run(phase, cluster, options, rest) for phase in phases_for(cluster, options.phase)]
    finally:
        if not found and not options.keep:
            cluster.stop()
    lines = summary(outcomes)
    if len(outcomes) == len(PHASES):
        lines.append(whole(time.monotonic() - begun))
    print("\n".join(("", "scenarios:", *lines)))
    return verdict(outcomes)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """What is read when nothing else is: it stands at the end of the log."""
    lines = []
    for outcome in outcomes:
        times = f"{outcome.seconds:6.0f} s, {outcome.prepared:.0f} s of it to prepare"
        lines.append(f"  {outcome.phase.name:12} {outcome.word:16} {times}")
        for name, failure in outcome.failures.items():
            how = "unsteady, passed at the second try" if name in outcome.unsteady else "failed"
            lines.append(f"    {how}: {name}")
            lines += [f"      {line}" for line in failure.told()]
        untold = (name for name in outcome.unsteady if name not in outcome.failures)
        lines += [f"    unsteady, passed at the second try: {name}" for name in untold]
        lines += [f"    {line}" for line in durations.told(outcome.durations)]
    return lines


def whole(seconds: float) -> str:
    """The line about all of it."""
    missed = "" if seconds < GOAL_SECONDS else ", MISSED"
    return f"  {'all':12} {'':16} {seconds:6.0f} s, the goal is less than {GOAL_SECONDS} s{missed}"


def parse_arguments(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Ours, and pytest's."""
    parser = argparse.ArgumentParser(
        prog="noctaya-scenarios", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--cluster", help="provider: host, kind or existing; detected if not given")
    parser.add_argument("--yes-use-this-cluster", action="store_true", help="confirms --cluster existing")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument(
        "--workers", type=int, default=64, help="scenarios that run at the same time, if fewer than usual"
    )
    parser.add_argument("--reports", type=Path, default=Path("scenario-reports"), help="folder for failures")
    names = [phase.name for phase in PHASES]
    parser.add_argument("--phase", action="append", choices=names, help="only this one; all if not given")
    options, rest = parser.parse_known_args(argv)
    options.phase = options.phase or names
    return options, rest


def phases_for(cluster: Cluster, wanted: Sequence[str]) -> list[Phase]:
    """Those wanted; on a cluster that is not ours, only those that leave others alone."""
    asked = [phase for phase in PHASES if phase.name in wanted]
    kept = [phase for phase in asked if cluster.name != "existing" or not phase.disturbs]
    for phase in asked:
        if phase not in kept:
            print(f"phase {phase.name} is left out: it would disturb a cluster that is not ours")
    return kept


def is_up(cluster: Cluster) -> bool:
    """Whether the cluster was there before us, and stays."""
    try:
        cluster.status()
    except ClusterError:
        return False
    return True


def run(phase: Phase, cluster: Cluster, options: argparse.Namespace, rest: Sequence[str]) -> Outcome:
    """Bring images and chart to the cluster, then run a phase."""
    print(f"\nphase {phase.name}: {phase.gateways} gateway(s) a service", flush=True)
    begun = time.monotonic()
    for again in (False, True):  # of a run before this one
        shutil.rmtree(_reports_of(phase, options, again=again), ignore_errors=True)
    with open_lab(cluster, state_folder(), gateways=phase.gateways):
        pass  # once for all processes of the phase
    prepared = time.monotonic() - begun
    code = subprocess.run(command_of(phase, options, rest), check=False).returncode
    failed = failures_of(phase, options) if code == FAILED else ()
    told = failures.read(_reports_of(phase, options))
    taken = durations.read(_reports_of(phase, options))
    if failed:
        print(f"\nphase {phase.name}: {len(failed)} once more, alone", flush=True)
        code = subprocess.run(command_of(phase, options, rest, again=True), check=False).returncode
        told |= failures.read(_reports_of(phase, options, again=True))
    return Outcome(
        phase=phase,
        code=code,
        seconds=time.monotonic() - begun,
        prepared=prepared,
        unsteady=failed if code == 0 else (),
        failures=told,
        durations=taken,
    )


def failures_of(phase: Phase, options: argparse.Namespace) -> tuple[str, ...]:
    """Names of the scenarios that failed in the run of a phase before."""
    file = _failures_file(phase, options)
    return tuple(json.loads(file.read_text())) if file.exists() else ()


def _failures_file(phase: Phase, options: argparse.Namespace) -> Path:
    return _cache_of(phase, options) / "v" / "cache" / "lastfailed"


def _cache_of(phase: Phase, options: argparse.Namespace) -> Path:
    return _reports_of(phase, options) / "pytest-cache"


def _reports_of(phase: Phase, options: argparse.Namespace, *, again: bool = False) -> Path:
    return Path(options.reports).absolute() / f"{phase.name}{'-again' if again else ''}"


def command_of(
    phase: Phase, options: argparse.Namespace, rest: Sequence[str], *, again: bool = False
) -> list[str]:
    """pytest's command line; `again` for those that failed before."""
    command = [sys.executable, "-m", "pytest", str(TESTS), "-m", phase.marks]
    command += [f"-pno:{plugin}" for plugin in UNUSED_PLUGINS]
    command += ["-o", f"cache_dir={_cache_of(phase, options)}"]
    command += [
        "--as-installed",
        f"--gateways={phase.gateways}",
        f"--reports={_reports_of(phase, options, again=again)}",
        f"--junit-xml={_reports_of(phase, options, again=again) / durations.FILE}",
    ]
    if options.cluster:
        command.append(f"--cluster={options.cluster}")
    if options.yes_use_this_cluster:
        command.append("--yes-use-this-cluster")
    if again:
        command += ["--last-failed", "--last-failed-no-failures=none"]
    elif (workers := min(options.workers, phase.side_by_side)) > 1:
        # One at a time, in their order: it begins with the long ones.
        command += [f"-n{workers}", "--dist=load", "--maxschedchunk=1"]
    return [*command, *rest]


def verdict(outcomes: Sequence[Outcome]) -> int:
    """0 when something ran and everything that ran passed."""
    if not any(outcome.ran for outcome in outcomes):
        print("noctaya-scenarios: no scenario matches", file=sys.stderr)
        return FAILED
    return FAILED if any(outcome.ran and outcome.code != 0 for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
