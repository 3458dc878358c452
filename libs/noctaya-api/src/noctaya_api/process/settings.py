"""Settings from the environment: field types and a start that fails clearly.

The v0.4 alpha replaced a bad value by its default without a word. Here a bad value stops the start, with one
line on stderr for each, and each line names the variable.
"""

import re
import sys
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from noctaya_api.duration import parse_duration
from noctaya_api.process.listen import parse_listen

S = TypeVar("S", bound=BaseSettings)

SETTINGS_CONFIG = SettingsConfigDict(
    env_prefix="NOCTAYA_",
    env_ignore_empty=True,
    extra="ignore",
    frozen=True,
)
"""For every service's settings model: `NOCTAYA_` names, an empty variable is an unset one, immutable."""


def _seconds(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


def _listen(value: str) -> str:
    parse_listen(value)
    return value


GoDuration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds; a Go duration such as `300ms`, `1h30m` or `0` in the environment; add `Field(gt=0)` as bound."""

ListenAddress = Annotated[str, AfterValidator(_listen)]
"""`host:port` or `:port`, checked; `parse_listen` splits it."""


def load_settings(settings: type[S]) -> S:
    """Read the settings, or say on stderr what is wrong with which variable and end the process.

    Raises:
        SystemExit: code 1, after one line for each bad or missing variable.
    """
    try:
        return settings()
    except ValidationError as error:
        for line in explain(settings, error):
            print(line, file=sys.stderr)
    except SettingsError as error:
        named = re.search(r'field "([^"]+)"', str(error))
        where = environment_name(settings, named.group(1)) if named else "environment"
        print(f"{where}: not valid JSON for this setting", file=sys.stderr)
    raise SystemExit(1)


def explain(settings: type[BaseSettings], error: ValidationError) -> list[str]:
    """One line an error: the variable, what is wrong, and the value unless it could hold a credential."""
    lines = []
    for item in error.errors(include_url=False):
        if item["type"] == "missing":
            lines.append(f"{environment_name(settings, str(item['loc'][0]))}: required, but not set")
            continue
        problem = item["msg"].removeprefix("Value error, ")
        if not item["loc"]:
            lines.append(problem)
            continue
        value = item["input"]
        shown = f" (got {value[:80]!r})" if isinstance(value, str) and "@" not in value else ""
        if shown and repr(value) in problem:
            shown = ""
        lines.append(f"{environment_name(settings, str(item['loc'][0]))}: {problem}{shown}")
    return lines


def environment_name(settings: type[BaseSettings], field: str) -> str:
    """The environment variable that feeds `field` (a field's name, or its alias as pydantic reports it)."""
    info = settings.model_fields.get(field)
    if info is None:
        return field.upper()
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0] if isinstance(alias.choices[0], str) else None
    if isinstance(alias, str):
        return alias.upper()
    return f"{settings.model_config.get('env_prefix', '')}{field}".upper()
