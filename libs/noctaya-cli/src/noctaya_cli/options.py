"""Options of `noctaya run`, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from noctaya_api import names

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
    """`NOCTAYA_X=value` options; raises OptionError for another form, and for what no gateway knows."""
    known = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    found: dict[str, str] = {}
    for value in values:
        name, separator, setting = value.partition("=")
        if not (name.startswith(SETTING_PREFIX) and separator):
            raise OptionError(f"--gateway-env {value}: expected {SETTING_PREFIX}NAME=VALUE")
        if name not in known:
            close = get_close_matches(name, sorted(known), n=1)
            meant = f"; {close[0]}?" if close else "; `noctaya-gateway --help` lists them"
            raise OptionError(f"--gateway-env {name}: there is no such setting{meant}")
        found[name] = setting
    return found
