"""The phases of an activation: from the times of its record to begins, ends and seconds. Pure.

The operator writes these as durations, spans and metrics, the command line draws them: one definition of
where a phase begins keeps all of them telling the same story.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from noctaya_api.v1alpha1.llmservice_status import ActivationRecord

TOTAL: Final = "total"
FIRST_BYTE: Final = "first_byte"

_PHASES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("demand", ("requested",), "keda_told"),
    ("autoscaling", ("keda_told", "requested"), "replicas_written"),
    ("scheduling", ("replicas_written", "keda_told", "requested"), "scheduled"),
    ("weights", ("scheduled",), "weights_present"),
    ("image_pull", ("weights_present", "scheduled"), "images_pulled"),
    ("start", ("images_pulled", "weights_present", "scheduled"), "started"),
    ("load", ("started",), "ready"),
    (FIRST_BYTE, ("ready",), "first_byte"),
)
"""Name, the times that can be its begin in order of preference, and its end."""
PHASES: Final = tuple(name for name, _, _ in _PHASES)
"""Every phase, in order."""


def spans(record: ActivationRecord) -> Iterator[tuple[str, datetime, datetime]]:
    """Name, begin and end of every phase whose both ends are known."""
    for name, start_fields, field in _PHASES:
        end = _time(getattr(record, field))
        start = next((time for each in start_fields if (time := _time(getattr(record, each)))), None)
        if start is not None and end is not None:
            # The kubelet's times are whole seconds, ours are finer: an end before the begin is none.
            yield name, start, max(start, end)


def phases(record: ActivationRecord) -> Iterator[tuple[str, float]]:
    """Name and seconds of every phase whose both ends are known; `total`, the time until ready, last."""
    for name, start, end in spans(record):
        yield name, (end - start).total_seconds()
    begun, ready = _time(record.requested), _time(record.ready)
    if begun is not None and ready is not None:
        yield TOTAL, max(0.0, (ready - begun).total_seconds())


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
