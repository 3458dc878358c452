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
from noctaya_scenarios.waiting import NotYet

from noctaya_chaos.catalogue import FAULTS, Fault
from noctaya_chaos.ground import add_options, prepared
from noctaya_chaos.report import NoMarks, between, table, write
from noctaya_chaos.run import Verdict, examine
from noctaya_chaos.verdict import summary

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse(argv)
    verdicts: list[Verdict] = []
    whole = False
    try:
        with prepared("chaos", options) as field:
            for verdict in examine(options.faults, field):
                verdicts.append(verdict)
                tell(verdict)
            whole = True
    except ClusterError as error:
        print(f"noctaya-chaos: the cluster is not to be had: {error}", file=sys.stderr)
        return USAGE_ERROR
    except NotYet as error:
        print(f"noctaya-chaos: ended before its end: {error}", file=sys.stderr)
    finally:  # also of a run that somebody ends
        kept = put(options.write, verdicts) if options.write and verdicts else True
    held = sum(not each.broken for each in verdicts)
    rest = "everything came to rest; " if whole else ""
    print(f"{rest}{held} of {len(options.faults)} promises held")
    if not kept:
        return USAGE_ERROR
    return 0 if whole and held == len(options.faults) else 1


def put(page: Path, verdicts: Sequence[Verdict]) -> bool:
    """Write the rows of what was seen into the page's table, whose other rows stay; whether that worked."""
    try:
        write(page, table(verdicts, known=between(page), order=[fault.done for fault in FAULTS]))
    except (OSError, NoMarks) as error:
        print(f"noctaya-chaos: {error}", file=sys.stderr)
        return False
    return True


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments; `faults` are those to inflict, in the catalogue's order."""
    parser = argparse.ArgumentParser(prog="noctaya-chaos", description=(__doc__ or "").partition("\n\n")[0])
    names = [fault.name for fault in FAULTS]
    parser.add_argument("--only", action="append", choices=names, metavar="FAULT", help=", ".join(names))
    add_options(parser)
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the rows into the table of docs/reliability.md"
    )
    options = parser.parse_args(argv)
    options.faults = wanted(options.only)
    if options.write:
        try:
            between(options.write)  # now, not after the last fault
        except (OSError, NoMarks) as error:
            parser.error(str(error))
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
