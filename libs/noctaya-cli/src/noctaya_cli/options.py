"""Options of `noctaya run`, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SETTING_PREFIX = "NOCTAYA_"


class OptionError(Exception):
    """Something the user gave can't work; the message may have several lines, one a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What was asked for on the command line."""

    files: list[Path]
    volumes: Mapping[str, Path]
    secrets: Mapping[str, Path]
    host: str
    port: int
    logs: bool
    events: Path | None
    gateway_settings: Mapping[str, str]


def parse_mapping(values: list[str], *, option: str) -> dict[str, Path]:
    """`NAME=DIR` options.

    Raises OptionError for another form, a repeated name or a directory that isn't there.
    """
    found: dict[str, Path] = {}
    for value in values:
        name, separator, directory = value.partition("=")
        if not (name and separator and directory):
            raise OptionError(f"{option} {value}: expected NAME=DIR")
        if name in found:
            raise OptionError(f"{option} {name} is given twice")
        path = Path(directory).expanduser().absolute()
        if not path.is_dir():
            raise OptionError(f"{option} {value}: {path} is not a directory")
        found[name] = path
    return found


def parse_settings(values: list[str]) -> dict[str, str]:
    """`NOCTAYA_X=value` options; raises OptionError for another form."""
    found: dict[str, str] = {}
    for value in values:
        name, separator, setting = value.partition("=")
        if not (name.startswith(SETTING_PREFIX) and separator):
            raise OptionError(f"--gateway-env {value}: expected {SETTING_PREFIX}NAME=VALUE")
        found[name] = setting
    return found
