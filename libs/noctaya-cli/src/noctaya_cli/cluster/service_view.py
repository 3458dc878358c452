"""An LLMService as a person looks at it: state, demand, last cold start, what is wrong. Pure.

Read leniently from the raw object: a status written by another version must still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from noctaya_api.conditions import ConditionType, KeepReason
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord
from pydantic import ValidationError

from noctaya_cli.cluster.waterfall import age

QUIET = frozenset(
    {"ScaledToZero", "Pending", "ModelLoading", "Starting", "Activating", "Prewarming", "Asleep"}
)
"""Reasons of Ready=False that are no problem by themselves."""
DEFAULT_SLOTS: Final = 100
"""`endpoint.maxQueue` of an object that was stored before the CRD had its default."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One condition that says something is wrong."""

    condition: str
    reason: str
    message: str
    since: str = ""


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """One row of `noctaya status`."""

    namespace: str
    name: str
    phase: str
    runtime: str
    model: str
    ready: int
    maximum: int
    slots: int
    """Requests that one gateway admits."""
    stale: bool
    """True when the operator has not looked at the newest spec."""
    activation: ActivationRecord | None
    former: tuple[ActivationRecord, ...]
    """The activations before it, the newest first."""
    problems: tuple[Problem, ...]
    prewarm: Mapping[str, Any]
    keep: Mapping[str, Any]
    """`status.keep`; empty while demand decides."""

    @property
    def problem(self) -> Problem | None:
        """The first thing to look at."""
        return self.problems[0] if self.problems else None

    def cold_start(self, now: datetime) -> str:
        """The last cold start in a few characters: `12.3s`, `12.3s so far`, `failed`, or a dash."""
        record = self.activation
        if record is None:
            return "-"
        begun = datetime.fromisoformat(record.requested)
        if record.ready is not None:
            return f"{(datetime.fromisoformat(record.ready) - begun).total_seconds():.1f}s"
        if record.outcome is ActivationOutcome.IN_PROGRESS:
            return f"{(now - begun).total_seconds():.1f}s so far"
        return "failed"

    def kept(self, now: datetime) -> str:
        """What the service is kept in a few characters: `awake 2`, `asleep, 25m left`, or a dash."""
        if not self.keep:
            return "-"
        state = str(self.keep.get("state") or "?").lower()
        said = state if state == "asleep" else f"{state} {self.keep.get('replicas', '?')}"
        try:
            left = (datetime.fromisoformat(str(self.keep["until"])) - now).total_seconds()
        except (KeyError, ValueError, TypeError):
            return said
        return f"{said}, {age(left)} left"


def view_of(service: Mapping[str, Any]) -> ServiceView:
    """The view of a raw LLMService."""
    metadata, spec = _mapping(service, "metadata"), _mapping(service, "spec")
    status = _mapping(service, "status")
    source = _mapping(_mapping(spec, "model"), "source")
    generation, going = metadata.get("generation"), bool(metadata.get("deletionTimestamp"))
    return ServiceView(
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or ""),
        phase="Deleting" if going else str(status.get("phase") or "Unknown"),
        runtime=str(status.get("resolvedRuntime") or "-"),
        model=str(source.get("uri") or "-"),
        ready=_integer(status.get("replicas")),
        maximum=_integer(_mapping(spec, "scaling").get("max"), 1),
        slots=_integer(_mapping(spec, "endpoint").get("maxQueue"), DEFAULT_SLOTS),
        stale=bool(generation) and status.get("observedGeneration", generation) != generation,
        activation=_activation(status.get("lastActivation")),
        former=_former(status),
        # What its conditions say while its objects go one after the other is true and no trouble.
        problems=() if going else tuple(_problems(status)),
        prewarm=_mapping(status, "prewarm"),
        keep=_mapping(status, "keep"),
    )


def _problems(status: Mapping[str, Any]) -> list[Problem]:
    if not status:
        return [
            Problem(
                condition="Ready",
                reason="NotReconciled",
                message="no operator has looked at this service yet",
            )
        ]
    known = {str(each.get("type")): each for each in _conditions(status)}
    found: list[Problem] = []
    for kind, bad in _BAD:
        condition = known.get(kind)
        if condition is None or condition.get("status") != bad:
            continue
        reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
        if kind == "Ready" and (reason in QUIET or any(each.reason == reason for each in found)):
            continue
        if kind == ConditionType.KEPT and reason != KeepReason.INVALID:
            # On its way to what is wanted.
            continue
        if any(each.reason == reason and each.message == message for each in found):
            continue
        since = str(condition.get("lastTransitionTime") or "")
        found.append(Problem(condition=kind, reason=reason, message=message, since=since))
    return found


_BAD: Final = (("Degraded", "True"), ("AutoscalingReady", "False"), ("Ready", "False"), ("Kept", "False"))
"""Conditions in the order they are told, and the status that is bad news."""


def _former(status: Mapping[str, Any]) -> tuple[ActivationRecord, ...]:
    raw = status.get("recentActivations")
    found = map(_activation, raw if isinstance(raw, list) else [])
    return tuple(each for each in found if each is not None)


def _activation(raw: object) -> ActivationRecord | None:
    if not isinstance(raw, Mapping):
        return None
    try:
        return ActivationRecord.model_validate(raw)
    except ValidationError:
        return None


def _conditions(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    raw = status.get("conditions")
    return [each for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []


def _mapping(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = parent.get(name)
    return value if isinstance(value, Mapping) else {}


def _integer(value: object, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
