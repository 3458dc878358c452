"""The `noctaya` command line."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from noctaya_cli import cluster_commands, keep_commands
from noctaya_cli.complaint import fail
from noctaya_cli.options import OptionError, RunOptions, parse_mapping, parse_settings
from noctaya_cli.plain import allow_any_text

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)

Files = Annotated[
    list[Path], typer.Argument(help="Manifests (YAML or JSON), or directories of them.", metavar="FILE...")
]


def show_version(wanted: bool) -> None:
    """Print the version and end, when asked for."""
    if wanted:
        typer.echo(f"noctaya {version('noctaya-cli')}")
        raise typer.Exit


@app.callback()
def noctaya(
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Model servers that scale to zero and come back on the next request."""
    open_standard_streams()


@app.command()
def run(  # noqa: PLR0917 - typer turns parameters into options
    files: Files,
    volume: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM=DIR", help="Directory for a pvc:// claim; may be repeated."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=DIR", help="Directory for a Secret, one file a key; may be repeated."),
    ] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of the first service, the next free ones follow; 0: any."),
    ] = 8080,
    host: Annotated[str, typer.Option(help="Address the gateways listen on.")] = "127.0.0.1",
    logs: Annotated[bool, typer.Option("--logs", help="Show what the processes print.")] = False,
    events: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append every state change as a JSON line.")
    ] = None,
    gateway_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A further NOCTAYA_* setting for the gateways; may be repeated."
        ),
    ] = None,
) -> None:
    """Run LLMServices on this machine."""
    from noctaya_cli.session import run_session  # noqa: PLC0415 - gRPC and rich cost a second of CPU

    try:
        options = RunOptions(
            files=files,
            volumes=parse_mapping(volume or [], option="--volume"),
            secrets=parse_mapping(secret or [], option="--secret"),
            host=host,
            port=port,
            logs=logs,
            events=events,
            gateway_settings=parse_settings(gateway_env or []),
        )
        run_session(options)
    except OptionError as error:
        fail(str(error))


@app.command()
def validate(files: Files) -> None:
    """Check manifests without running them."""
    from noctaya_api.manifests import printable  # noqa: PLC0415 - pydantic models

    from noctaya_cli.validation import validate as validate_files  # noqa: PLC0415

    report = validate_files(files)
    try:
        for line in report.summary:
            typer.echo(printable(line))
    except OSError as error:
        abandon_standard_output()
        fail(f"standard output: {error.strerror or error}")
    if report.problems:
        fail("\n".join(report.problems))


for _command, _line in (cluster_commands.COMMANDS | keep_commands.COMMANDS).items():
    app.command(short_help=_line)(_command)


def open_standard_streams() -> None:
    """Give standard streams that are closed to nobody, lest the next file that is opened becomes one.

    Those that are open take every text."""
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:
            # Descriptors are given out from the lowest, so in this order each stream gets its own.
            file = open(os.devnull, "r" if stream == "stdin" else "w", encoding="utf-8")  # noqa: PTH123, SIM115
            setattr(sys, stream, file)
        else:
            allow_any_text(getattr(sys, stream))


def abandon_standard_output() -> None:
    """Send what is still buffered to nobody, lest Python fails once more at its end and exits with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
