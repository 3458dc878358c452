"""Environment and command line of the stub.

Arguments of real engines are accepted and, but for two, ignored: the same runtime manifest can then start an
engine or its stand-in.
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noctaya_api.duration import parse_duration

MAX_TOKENS = 1_000_000


class SettingError(Exception):
    """A setting that can't be used; the message names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How the stub starts. Delays are in seconds; port 0 takes a free one."""

    port: int
    model: str
    pod: str
    startup_delay: float
    token_delay: float
    token_count: int


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Settings:
    """Settings of a process. Raises SettingError."""
    env = os.environ if environment is None else environment
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--port", default=env.get("STUB_PORT", "8000"))
    parser.add_argument("--served-model-name", "--alias", default=env.get("STUB_MODEL", "stub"))
    given, _ = parser.parse_known_args(arguments)
    return Settings(
        port=whole_number("--port", given.port, lowest=0, highest=65535),
        model=given.served_model_name,
        pod=env.get("HOSTNAME") or socket.gethostname(),
        startup_delay=delay("STUB_STARTUP_DELAY", env.get("STUB_STARTUP_DELAY", "0s")),
        token_delay=delay("STUB_TOKEN_DELAY", env.get("STUB_TOKEN_DELAY", "50ms")),
        token_count=whole_number("STUB_TOKEN_COUNT", env.get("STUB_TOKEN_COUNT", "16"), lowest=1),
    )


def delay(name: str, text: object) -> float:
    """Seconds of a Go duration that is not negative. Raises SettingError."""
    try:
        seconds = parse_duration(text) if isinstance(text, str) else -1.0
    except ValueError as error:
        raise SettingError(f"{name}: {error}") from error
    if seconds < 0:
        raise SettingError(f"{name} must be a duration such as 50ms that is not negative, not {text!r}")
    return seconds


def whole_number(name: str, text: object, *, lowest: int, highest: int = MAX_TOKENS) -> int:
    """A whole number in a range, as text or as itself. Raises SettingError."""
    number = int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else text
    if not isinstance(number, int) or isinstance(number, bool) or not lowest <= number <= highest:
        raise SettingError(f"{name} must be a whole number from {lowest} to {highest}, not {text!r}")
    return number
