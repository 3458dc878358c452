"""`python -m noctaya_chaos`: breaks Noctaya on a cluster, one fault at a time, under steady mixed load.

Brings a cluster up for it unless one is up. About a minute a fault. Exit 0: every promise held. 1: one did
not. 2: bad arguments, or no cluster whose processes are on this machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from noctaya_cluster import ClusterError

from noctaya_chaos.catalogue import FAULTS, Fault
from noctaya_chaos.ground import add_options, prepared
from noctaya_chaos.report import NoMarks, table, write
from noctaya_chaos.run import Verdict, examine
from noctaya_chaos.verdict import summary

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse(argv)
    verdicts: list[Verdict] = []
    try:
        with prepared("chaos", options) as field:
            for verdict in examine(options.faults, field):
                verdicts.append(verdict)
                tell(verdict)
    except ClusterError as error:
        print(f"noctaya-chaos: the cluster is not to be had: {error}", file=sys.stderr)
        return USAGE_ERROR
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
    add_options(parser)
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
