"""Which change of a status is told as an Event.

A failure is told when it begins or becomes another one, a recovery once, a finished activation once. Steps
that fail say so in the conditions only: they are tried again, and an Event for each would bury the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from noctaya_api.conditions import (
    ConditionStatus,
    ConditionType,
    EventAction,
    EventReason,
    KeepReason,
    ObservationReason,
    StepReason,
)
from noctaya_api.keep import KeepState
from noctaya_api.v1alpha1.base import Condition
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, LLMServiceStatus

from noctaya_operator.status import previous_status

_TOLD = frozenset({*map(str, ObservationReason), str(StepReason.PREWARM_FAILED)})


@dataclass(frozen=True, kw_only=True)
class Told:
    """One Event."""

    type: str
    reason: str
    action: str
    note: str


def events_of(before: Mapping[str, Any], after: LLMServiceStatus) -> Iterator[Told]:
    """The Events for a change from the stored object `before` to the status `after`."""
    old = previous_status(before)
    was, now = _degraded(old), _degraded(after)
    if now is not None and now.status is ConditionStatus.TRUE:
        new = was is None or was.status is not ConditionStatus.TRUE or was.reason != now.reason
        if new and now.reason in _TOLD:
            yield Told(
                type="Warning",
                reason=now.reason,
                action=EventAction.OBSERVE_BACKEND_FAILURE,
                note=now.message,
            )
    elif was is not None and was.status is ConditionStatus.TRUE:
        yield Told(
            type="Normal",
            reason=EventReason.BACKEND_RECOVERED,
            action=EventAction.OBSERVE_BACKEND_RECOVERY,
            note=f"{was.reason} is over",
        )
    yield from _keeping(old, after)
    if _finished(after) not in {None, _finished(old)}:
        yield Told(
            type="Normal",
            reason=EventReason.ACTIVATED,
            action=EventAction.OBSERVE_ACTIVATION,
            note=_timeline(after),
        )


def _keeping(old: LLMServiceStatus, new: LLMServiceStatus) -> Iterator[Told]:
    """What somebody wants of the service beside its demand: when that begins, changes, ends."""
    invalid = _invalid(new)
    if invalid is not None and invalid != _invalid(old):
        yield Told(type="Warning", reason=KeepReason.INVALID, action=EventAction.OBSERVE_KEEP, note=invalid)
    if new.keep == old.keep:
        return
    reason, note = EventReason.KEEP_ENDED, "replicas follow demand again"
    if new.keep is not None:
        asleep = new.keep.state is KeepState.ASLEEP
        reason = EventReason.KEPT_ASLEEP if asleep else EventReason.KEPT_AWAKE
        note = "no replica may run" if asleep else f"at least {new.keep.replicas} of its replicas run"
        note += f" until {new.keep.until}" if new.keep.until else ""
    yield Told(type="Normal", reason=reason, action=EventAction.OBSERVE_KEEP, note=note)


def _invalid(status: LLMServiceStatus) -> str | None:
    found = (each for each in status.conditions if each.type == ConditionType.KEPT)
    return next((each.message for each in found if each.reason == KeepReason.INVALID), None)


def _degraded(status: LLMServiceStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == ConditionType.DEGRADED), None)


def _finished(status: LLMServiceStatus) -> str | None:
    """Which activation is finished, if the last one is."""
    record = status.last_activation
    if record is None or record.outcome is not ActivationOutcome.SUCCEEDED:
        return None
    return record.requested


def _timeline(status: LLMServiceStatus) -> str:
    record = status.last_activation
    durations = record.durations.manifest() if record is not None and record.durations is not None else {}
    total = durations.pop("total", "")
    parts = ", ".join(f"{phase} {spent}" for phase, spent in durations.items())
    named = f" (activation {record.id})" if record is not None and record.id else ""
    return f"ready{f' after {total}' if total else ''}{named}{f': {parts}' if parts else ''}"
