"""What the command line says when something is wrong."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer


def fail(message: str) -> NoReturn:
    """Print what is wrong and end with exit code 1."""
    complain(message)
    raise typer.Exit(1)


def complain(message: str) -> None:
    """Print what is wrong, which may hold whatever somebody wrote into a file."""
    from noctaya_api.manifests import printable  # noqa: PLC0415 - pydantic models

    for line in message.splitlines():
        print(f"error: {printable(line)}", file=sys.stderr)
