"""`python -m noctaya_cluster up | down | status | load | kubectl | diagnostics`.

Exit 1: no cluster, or it does not work; the message says what to do.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from noctaya_parts import BuildError

from .choice import ENVIRONMENT, PROVIDERS, choose_provider
from .errors import ClusterError
from .existing import FLAG
from .provider import Cluster


class Stopped(Exception):
    """SIGTERM."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse_arguments(argv)
    signal.signal(signal.SIGTERM, _stop)
    try:
        cluster = choose_provider(options.cluster, confirmed=options.confirmed, report=_say)
        return carry_out(options, cluster)
    except (ClusterError, BuildError) as error:
        _say(f"noctaya-cluster: {error}")
        return 1
    except (KeyboardInterrupt, Stopped):
        return 130


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    which = argparse.ArgumentParser(add_help=False)
    which.add_argument(
        "--cluster", choices=PROVIDERS, help=f"instead of {ENVIRONMENT}, or of what works on this machine"
    )
    which.add_argument(
        FLAG, dest="confirmed", action="store_true", help="with `--cluster existing`: the cluster may be used"
    )
    parser = argparse.ArgumentParser(prog="noctaya-cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", parents=[which], help="bring the cluster up, or see that it is well")
    commands.add_parser("down", parents=[which], help="remove the cluster and everything of it")
    commands.add_parser("status", parents=[which], help="nodes, versions, KEDA, disk")
    load = commands.add_parser("load", parents=[which], help="bring images to every node")
    load.add_argument("archives", nargs="+", type=Path, metavar="IMAGE.tar", help="of `docker save`")
    report = commands.add_parser(
        "diagnostics", parents=[which], help="objects, events and logs into a folder"
    )
    report.add_argument("folder", type=Path)
    report.add_argument(
        "--namespace", action="append", default=[], help="besides the system's; all by default"
    )
    commands.add_parser("kubectl", parents=[which], help="kubectl with the cluster's kubeconfig")
    ours, theirs = split_kubectl(list(sys.argv[1:] if argv is None else argv))
    return parser.parse_args(ours, argparse.Namespace(arguments=theirs))


def split_kubectl(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our part of a command line and kubectl's, which begins at the first word that is not an option of ours.

    kubectl's own words must not be taken for ours: it has a `--cluster` too.
    """
    if argv[:1] != ["kubectl"]:
        return argv, []
    taken = 1
    while argv[taken : taken + 1] in (["--cluster"], [FLAG], ["-h"], ["--help"]):
        taken += 2 if argv[taken] == "--cluster" else 1
    return argv[:taken], argv[taken:]


def carry_out(options: argparse.Namespace, cluster: Cluster) -> int:
    """One command on a cluster; its exit code."""
    match options.command:
        case "up":
            cluster.start()
            print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        case "down":
            cluster.stop()
        case "status":
            print(cluster.status(), flush=True)
        case "load":
            cluster.load_image(*options.archives)
        case "diagnostics":
            cluster.diagnostics(options.folder, namespaces=tuple(options.namespace))
            print(options.folder, flush=True)
        case "kubectl":
            command = [*cluster.kubectl.prefix, *options.arguments]
            os.execvp(command[0], command)
    return 0


def _stop(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
