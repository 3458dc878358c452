"""`python -m noctaya_engine`: build the images, make the base images, keep an engine up by hand."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from noctaya_engine import images
from noctaya_engine.base import ensure_bases
from noctaya_engine.catalog import IMAGES
from noctaya_engine.engine import Engine
from noctaya_engine.errors import EngineError


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; 0, or 1 with one clear message."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except EngineError as error:
        print(f"noctaya_engine: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m noctaya_engine", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build images; what is unchanged is not built again")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(IMAGES)}")
    build.add_argument("--save", type=Path, metavar="DIR", help="put NAME.tar and NAME.cdx.json there")
    build.add_argument("--engine", choices=("private", "system"), help="default: private where it can run")
    build.add_argument("--json", action="store_true", help="print what was built as JSON")
    build.set_defaults(run=_build)
    base = commands.add_parser("base", help="make the base images from Debian packages")
    base.add_argument("--refresh", action="store_true", help="with today's packages")
    base.set_defaults(run=_base)
    run = commands.add_parser("run", help="run a command with DOCKER_HOST of the private engine")
    run.add_argument("command", nargs=argparse.REMAINDER, help="for instance: docker images")
    run.set_defaults(run=_run)
    return parser


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _build(options: argparse.Namespace) -> int:
    built = images.ensure(*options.names, report=_report, kind=options.engine)
    rows = []
    for image in built.values():
        tar = images.save(image, options.save) if options.save else image.tar
        rows.append({**images.about(image), "tar": str(tar)})
        if not options.json:
            print(f"{image.name:<17} {image.reference:<48} {tar}")
    if options.json:
        print(json.dumps(rows, indent=1))
    return 0


def _base(options: argparse.Namespace) -> int:
    for base in ensure_bases(report=_report, refresh=options.refresh).values():
        print(f"{base.name:<13} {base.reference:<48} {base.tar}")
    return 0


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        print("noctaya_engine: run needs a command", file=sys.stderr)
        return 2
    with Engine.running(report=_report) as engine:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the command from the terminal itself
        return subprocess.run(
            options.command, env={**os.environ, **engine.environment}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
