"""The command line of `noctaya-prewarm`: arguments in, an exit code out."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from noctaya_api.duration import parse_duration
from noctaya_api.process.logs import configure_logging
from noctaya_api.process.settings import load_settings

from noctaya_prewarm.app import execute
from noctaya_prewarm.errors import BadSettings
from noctaya_prewarm.run import Run
from noctaya_prewarm.settings import AgentSettings

NAME = "noctaya-prewarm"
# Files belong to the pod's fsGroup; the next agent may run with another uid.
_UMASK = 0o002
_PRUNE = "first remove every other model of this cache, but none that an agent works on"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `noctaya-prewarm`."""
    arguments = _parser().parse_args(argv)
    try:
        settings = load_settings(AgentSettings)
    except SystemExit:
        sys.exit(BadSettings.code)
    configure_logging(service=NAME, level=settings.log_level)
    os.umask(_UMASK)
    command: Callable[[Run, argparse.Namespace], None] = arguments.command
    code = execute(lambda run: command(run, arguments), settings=settings, serve=arguments.serve)
    # Everything is written. Taking the interpreter apart would cost longer than starting it did, and would
    # wait for a thread that is stuck in a dead file system.
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME, description="Model weights arrive once, complete, verified and visible."
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {version(NAME)}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    download = commands.add_parser("download", help="fetch a model from a hub or a bucket")
    download.add_argument("--source", required=True, help="hf://, modelscope:// or s3:// URI")
    download.add_argument("--target", required=True, type=_absolute, help="directory to make")
    download.add_argument("--marker", type=_absolute, help="file to write last; in the target by default")
    download.add_argument("--include", action="append", default=[], metavar="GLOB", help="only these files")
    download.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="not these files")
    download.add_argument("--prune", action="store_true", help=_PRUNE)
    download.set_defaults(command=_download, serve=True)

    stage = commands.add_parser("stage", help="verify a pulled OCI layout and put the model in place")
    stage.add_argument("--from", dest="layout", required=True, type=_absolute, help="OCI layout directory")
    stage.add_argument("--source", required=True, help="oci:// URI")
    stage.add_argument("--target", required=True, help="directory to make; {digest} is filled in")
    stage.add_argument("--marker", required=True, help="file to write last; {digest} is filled in")
    stage.add_argument("--prune", action="store_true", help=_PRUNE)
    stage.set_defaults(command=_stage, serve=True)

    login = commands.add_parser("registry-auth", help="make the pull container's registry configuration")
    login.add_argument("--config", required=True, type=_absolute, help="dockerconfigjson file")
    login.add_argument("--source", required=True, help="oci:// URI")
    login.add_argument("--output", required=True, type=_absolute, help="configuration file to write")
    login.set_defaults(command=_registry_auth, serve=False)

    follow = commands.add_parser("follow-pull", help="serve how far the pull container is, until stopped")
    follow.add_argument("--layout", required=True, type=_absolute, help="OCI layout directory it writes")
    follow.add_argument("--manifest", required=True, type=_absolute, help="file with the manifest")
    follow.set_defaults(command=_follow_pull, serve=True)

    verify = commands.add_parser("verify", help="check a model against its marker")
    verify.add_argument("--marker", required=True, type=_absolute)
    verify.add_argument("--deep", action="store_true", help="read and hash every file")
    verify.set_defaults(command=_verify, serve=True)

    wait = commands.add_parser("wait", help="return once a model is there")
    wait.add_argument("--marker", required=True, type=_absolute)
    wait.add_argument("--source", help="the marker must be that of this URI")
    wait.add_argument("--timeout", type=_duration, metavar="DURATION", help="at most that long, e.g. 90m")
    wait.set_defaults(command=_wait, serve=False)
    return parser


def _absolute(text: str) -> Path:
    path = Path(text)
    if not text or not path.is_absolute() or ".." in path.parts:
        raise argparse.ArgumentTypeError(f"{text!r} is not an absolute path without ..")
    return path


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


# A command's module is imported when it runs: a wait must not pay for a hub's library.
def _download(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.download import download  # noqa: PLC0415

    download(
        run,
        source=arguments.source,
        target=arguments.target,
        marker=arguments.marker,
        include=tuple(arguments.include),
        exclude=tuple(arguments.exclude),
        prune=arguments.prune,
    )


def _stage(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.stage import stage  # noqa: PLC0415

    stage(
        layout=arguments.layout,
        source=arguments.source,
        target=arguments.target,
        marker=arguments.marker,
        prune=arguments.prune,
        run=run,
    )


def _registry_auth(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.registry_auth import login  # noqa: PLC0415

    login(config=arguments.config, source=arguments.source, output=arguments.output)


def _follow_pull(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.pull_progress import follow_pull  # noqa: PLC0415

    follow_pull(run, layout=arguments.layout, manifest=arguments.manifest)


def _verify(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.verify import verify  # noqa: PLC0415

    verify(run, marker=arguments.marker, deep=arguments.deep)


def _wait(run: Run, arguments: argparse.Namespace) -> None:
    from noctaya_prewarm.wait import wait  # noqa: PLC0415

    wait(run, marker=arguments.marker, source=arguments.source, timeout=arguments.timeout)
