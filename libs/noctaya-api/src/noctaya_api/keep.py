"""The annotation `serving.noctaya.io/keep`: what a person wants of a service whatever its demand is.

`awake [N] [until TIME]` keeps at least N replicas, `asleep [until TIME]` keeps none. It is an annotation and
not part of the spec so that it survives a spec that is kept in Git, and a time instead of a duration so that
it means the same to an operator that was away meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from noctaya_api import names

MOST: Final = 2**31 - 1
"""Replicas; what the API can express."""
LIMIT: Final = 200
"""Characters of an annotation that are looked at."""
_TIME: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_FORM: Final = re.compile(
    rf"(?:(?P<awake>awake)(?:\s+(?P<replicas>[0-9]{{1,10}}))?|asleep)(?:\s+until\s+(?P<until>{_TIME}))?"
)


class KeepState(StrEnum):
    """What a service is kept."""

    AWAKE = "Awake"
    ASLEEP = "Asleep"


class KeepError(ValueError):
    """The annotation can't be read; says why and what would be right."""


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What is wanted of a service."""

    state: KeepState
    replicas: int = 0
    """Replicas that run at least: 1 or more awake, 0 asleep."""
    until: datetime | None = None
    """When it ends; None: not by itself."""

    @property
    def asleep(self) -> bool:
        """Whether no replica may run."""
        return self.state is KeepState.ASLEEP

    def holds(self, now: datetime) -> bool:
        """Whether it is in force at a moment."""
        return self.until is None or now < self.until

    @property
    def text(self) -> str:
        """The annotation's value."""
        words = "asleep" if self.asleep else f"awake {self.replicas}"
        return words if self.until is None else f"{words} until {time_text(self.until)}"


def awake(replicas: int = 1, *, until: datetime | None = None) -> Keep:
    """At least so many replicas, 1 or more."""
    return Keep(state=KeepState.AWAKE, replicas=replicas, until=until)


def asleep(*, until: datetime | None = None) -> Keep:
    """No replica."""
    return Keep(state=KeepState.ASLEEP, until=until)


def parse_keep(text: str) -> Keep:
    """What an annotation says. Raises KeepError."""
    found = _FORM.fullmatch(text.strip()) if len(text) <= LIMIT else None
    if found is None:
        shown = text if len(text) <= LIMIT else f"{text[:LIMIT]}…"
        raise KeepError(
            f"{shown!r} is neither 'awake [REPLICAS] [until TIME]' nor 'asleep [until TIME]', "
            "TIME as in 2026-11-30T18:00:00Z"
        )
    until = _moment(found["until"]) if found["until"] else None
    if not found["awake"]:
        return asleep(until=until)
    replicas = int(found["replicas"] or 1)
    if not 1 <= replicas <= MOST:
        raise KeepError(f"{text!r}: awake takes 1 to {MOST} replicas; 'asleep' keeps a service at none")
    return awake(replicas, until=until)


def keep_of(annotations: Mapping[str, Any]) -> Keep | None:
    """What a service's annotations say, None when there is nothing of it. Raises KeepError."""
    text = annotations.get(names.ANNOTATION_KEEP)
    return None if text is None else parse_keep(str(text))


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    try:
        # Into UTC at once: near the ends of the calendar that is what fails.
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise KeepError(f"{text!r} is no time: {error}") from error
