"""`python -m noctaya_apiserver build | up`: Kubernetes' API on loopback, to try the operator against.

Exit 1: a part could not be built or did not start.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from noctaya_parts import BuildError

from .build import ensure_binaries
from .child import ChildFailed
from .keda import ensure_keda_crds
from .noctaya import noctaya_plane


class Stopped(Exception):
    """SIGTERM."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    options = parse_arguments(argv)
    try:
        if options.command == "build":
            build()
        else:
            up(keda=options.keda, keep=options.keep)
    except (BuildError, ChildFailed) as error:
        print(f"noctaya-apiserver: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="noctaya-apiserver", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="fill the cache: the binaries and KEDA's CRDs")
    start = commands.add_parser("up", help="start a control plane and stay until Ctrl-C or SIGTERM")
    start.add_argument("--no-keda", dest="keda", action="store_false", help="leave KEDA's CRDs out")
    start.add_argument("--keep", type=Path, metavar="FOLDER", help="keep data and logs in this new folder")
    return parser.parse_args(argv)


def build() -> None:
    """Fill the cache."""
    binaries = ensure_binaries(report=_say)
    _say(f"binaries: {binaries.etcd.parent}")
    _say(f"KEDA's CRDs: {ensure_keda_crds(report=_say)}")


def up(*, keda: bool, keep: Path | None) -> None:
    """Start with the CRDs of Noctaya, say how to reach it, stay."""
    folder = keep or Path(tempfile.mkdtemp(prefix="noctaya-apiserver-"))
    signal.signal(signal.SIGTERM, _stop)
    try:
        with noctaya_plane(folder, keda=keda, report=_say) as plane:
            _say(f"ready: {plane.server}; logs in {folder}; Ctrl-C ends it")
            print(f"export KUBECONFIG={plane.kubeconfig()}", flush=True)
            while True:
                plane.check()
                time.sleep(1.0)
    except Stopped:
        return
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _stop(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
