"""`python -m noctaya_chaos`: breaks Noctaya on a cluster, one fault at a time, under steady mixed load.

Brings a cluster up for it unless one is up. About a minute a fault. Exit 0: every promise held. 1: one did
not. 2: bad arguments, or no cluster whose processes are on this machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from noctaya_cluster import ClusterError, choose_provider
from noctaya_scenarios.__main__ import is_up
from noctaya_scenarios.lab import open_lab, state_folder

from noctaya_chaos.catalogue import FAULTS, Fault
from noctaya_chaos.field import Field
from noctaya_chaos.report import NoMarks, table, write
from noctaya_chaos.run import Verdict, examine
from noctaya_chaos.verdict import summary

USAGE_ERROR = 2
GATEWAYS = 2


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse(argv)
    try:
        # Faults reach into processes of the nodes, which only this provider has on this machine.
        cluster = choose_provider("host", confirmed=False)
        found = is_up(cluster)
        if not options.as_installed:
            cluster.start()
    except ClusterError as error:
        print(f"noctaya-chaos: no cluster, so nothing was broken: {error}", file=sys.stderr)
        return USAGE_ERROR
    verdicts: list[Verdict] = []
    try:
        with (
            open_lab(cluster, state_folder(), gateways=GATEWAYS, as_installed=options.as_installed) as lab,
            lab.scene("chaos") as scene,
        ):
            for verdict in examine(options.faults, Field(lab, scene)):
                verdicts.append(verdict)
                tell(verdict)
    finally:
        if not found and not options.keep:
            cluster.stop()
    held = sum(not each.broken for each in verdicts)
    print(f"everything came to rest; {held} of {len(verdicts)} promises held")
    if options.write:
        try:
            write(options.write, table(verdicts))
        except (OSError, NoMarks) as error:
            print(f"noctaya-chaos: {error}", file=sys.stderr)
            return USAGE_ERROR
    return 1 if any(each.broken for each in verdicts) else 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments; `faults` are those to inflict, in the catalogue's order."""
    parser = argparse.ArgumentParser(prog="noctaya-chaos", description=(__doc__ or "").partition("\n\n")[0])
    names = [fault.name for fault in FAULTS]
    parser.add_argument("--only", action="append", choices=names, metavar="FAULT", help=", ".join(names))
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument(
        "--as-installed", action="store_true", help="take cluster, images and release as they are"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into docs/reliability.md")
    options = parser.parse_args(argv)
    options.faults = wanted(options.only)
    if options.write and options.only:
        parser.error("--write needs the whole table: leave --only out")
    return options


def wanted(names: Sequence[str] | None) -> list[Fault]:
    """Those named, else all."""
    return [fault for fault in FAULTS if not names or fault.name in names]


def tell(verdict: Verdict) -> None:
    """Two lines a fault."""
    print(
        f"{'broken' if verdict.broken else 'held  '}  {verdict.fault.name}: {verdict.fault.done}", flush=True
    )
    print(f"        {summary(verdict.seen)}", flush=True)
    for each in verdict.broken:
        print(f"        ! {each}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
