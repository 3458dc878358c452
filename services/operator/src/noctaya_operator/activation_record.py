"""The timeline of one activation, from no replica to a ready one, kept in the status of the service.

A new record begins when the service has none that is going on and a replica is asked for; it ends when the
service is back at zero. Times of the Pod are taken from the Pod; for the rest the moment counts at which the
operator saw it, unless what came after it is known to have been earlier. The id, when it was asked for and
when its first answer began are the gateways' to tell, and absent when they can't be reached. The record lives
in the status, so a restart of the operator does not lose it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from noctaya_api import names
from noctaya_api.activation_timeline import phases
from noctaya_api.duration import format_duration
from noctaya_api.gateway_activations import ListedActivation
from noctaya_api.v1alpha1.llmservice_status import (
    ActivationDurations,
    ActivationOutcome,
    ActivationRecord,
)

from noctaya_operator.activation_order import OF_THE_POD, in_order, timestamp
from noctaya_operator.diagnose import condition_of
from noctaya_operator.gateway_activations import told_of
from noctaya_operator.kube.objects import Object, key_of, metadata_of


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What of a service its activation is followed by."""

    demanded: bool
    """KEDA says that there is demand."""
    desired: int
    """Replicas asked of the Deployment."""
    ready: int
    pods: Sequence[Object]
    """Active backend Pods."""
    pulled: Mapping[str, str]
    """When the images of a Pod were there, by its name; only the kubelet's Events tell."""
    problem: str | None
    """What stands in the way, None when nothing does."""
    gateways: Sequence[ListedActivation] = ()
    """What gateways tell of their activations."""
    was_cold: bool = False
    """The status before this one said that nothing was ready."""


def follow_activation(
    previous: ActivationRecord | None, seen: Seen, now: datetime
) -> ActivationRecord | None:
    """The record as it is now."""
    wanted = seen.demanded or seen.desired > 0
    if previous is None or previous.ended is not None:
        # A backend that was ready before anybody looked was not activated now. One that was not, was:
        # the whole activation may lie between two looks.
        if not wanted or (previous is None and seen.ready > 0 and not seen.was_cold):
            return previous
        previous = ActivationRecord(outcome=ActivationOutcome.IN_PROGRESS, requested=timestamp(now))
    if not wanted and not seen.pods and seen.ready == 0:
        outcome = previous.outcome
        if outcome is ActivationOutcome.IN_PROGRESS:
            outcome = ActivationOutcome.FAILED
        return previous.model_copy(update={"ended": timestamp(now), "outcome": outcome})
    if previous.outcome is not ActivationOutcome.IN_PROGRESS:
        return _answered(_completed(previous, seen), seen.gateways)
    return _measured(_advanced(previous, seen, now))


def _completed(record: ActivationRecord, seen: Seen) -> ActivationRecord:
    """A success with what its Pod tells: the Deployment may be seen ready before the Pod is seen at all."""
    pod = _followed(record.pod, seen.pods)
    if record.outcome is not ActivationOutcome.SUCCEEDED or pod is None:
        return record
    created = str(metadata_of(pod).get("creationTimestamp") or "")
    if record.pod not in {None, key_of(pod).name} or not record.ready or not created:
        return record
    if datetime.fromisoformat(created) > datetime.fromisoformat(record.ready):
        return record  # a later replica
    missing = {field: read(pod) for field, read in _READ.items() if getattr(record, field) is None}
    changes = {field: time for field, time in missing.items() if time is not None}
    if not changes:
        return record
    return _measured(in_order(record.model_copy(update={"pod": key_of(pod).name, **changes})))


def _answered(record: ActivationRecord, gateways: Sequence[ListedActivation]) -> ActivationRecord:
    """A record that is over, with what only gateways know, once: what was told of it before stays true."""
    told = told_of(record, gateways)
    if told is None or record.first_byte is not None:
        return record
    changes = {
        "id": record.id or told.id,
        "first_byte": told.first_byte and max(told.first_byte, record.requested, key=datetime.fromisoformat),
    }
    if all(getattr(record, field) == value for field, value in changes.items()):
        return record
    return _measured(in_order(record.model_copy(update=changes)))


def _advanced(record: ActivationRecord, seen: Seen, now: datetime) -> ActivationRecord:
    changes: dict[str, Any] = {"message": seen.problem}
    if seen.desired > 0 and record.replicas_written is None:
        changes["replicas_written"] = timestamp(now)
    pod = _followed(record.pod, seen.pods)
    if pod is not None:
        name = key_of(pod).name
        if name != record.pod:
            changes |= {"pod": name, **dict.fromkeys(OF_THE_POD)}
            record = record.model_copy(update=dict.fromkeys(OF_THE_POD))
        for field, read in _READ.items():
            changes[field] = getattr(record, field) or read(pod)
        changes["images_pulled"] = record.images_pulled or seen.pulled.get(name)
    if seen.ready > 0:
        changes |= {
            "ready": changes.get("ready") or timestamp(now),
            "outcome": ActivationOutcome.SUCCEEDED,
            "message": None,
        }
    elif "ready" in changes:
        # The Deployment has to see it too before requests are sent there.
        changes["ready"] = None
    if (told := told_of(record, seen.gateways)) is not None:
        first = record.id is None or _earlier(record.requested, told.requested) != record.requested
        changes |= {
            "id": told.id if first else record.id,
            "requested": _earlier(record.requested, told.requested),
            "keda_told": _earlier(record.keda_told, told.keda_told),
            "first_byte": _earlier(record.first_byte, told.first_byte),
        }
    created = metadata_of(pod).get("creationTimestamp") if pod is not None else None
    return in_order(record.model_copy(update=changes), created=created)


def _earlier(one: str | None, other: str | None) -> str | None:
    """The earlier of two times, the first of two that are the same; None only when both are unknown."""
    return min((time for time in (one, other) if time), key=datetime.fromisoformat, default=None)


def _measured(record: ActivationRecord) -> ActivationRecord:
    spent = {name: format_duration(round(seconds, 3)) for name, seconds in phases(record)}
    durations = ActivationDurations.model_validate(spent) if spent else None
    return record.model_copy(update={"durations": durations})


def _followed(name: str | None, pods: Sequence[Object]) -> Object | None:
    """The Pod the record is of: a ready one, else the one followed so far, else the oldest."""

    def urgency(pod: Object) -> tuple[bool, bool, str, str]:
        ready = condition_of(pod, "Ready").get("status") == "True"
        known = key_of(pod).name == name
        created = str(metadata_of(pod).get("creationTimestamp") or "")
        return (not ready, not known, created, key_of(pod).name)

    return min(pods, key=urgency, default=None)


def _since(kind: str) -> Callable[[Object], str | None]:
    def read(pod: Object) -> str | None:
        condition = condition_of(pod, kind)
        return condition.get("lastTransitionTime") if condition.get("status") == "True" else None

    return read


def _weights(pod: Object) -> str | None:
    for status in _containers(pod, "initContainerStatuses"):
        if status.get("name") == names.CONTAINER_WAIT_FOR_PREWARM:
            over = (status.get("state") or {}).get("terminated") or {}
            return over.get("finishedAt") if over.get("exitCode") == 0 else None
    return None


def _started(pod: Object) -> str | None:
    for status in _containers(pod, "containerStatuses"):
        if status.get("name") == names.CONTAINER_SERVING:
            return ((status.get("state") or {}).get("running") or {}).get("startedAt")
    return None


_READ: Final[Mapping[str, Callable[[Object], str | None]]] = {
    "scheduled": _since("PodScheduled"),
    "weights_present": _weights,
    "started": _started,
    "ready": _since("Ready"),
}


def _containers(pod: Object, field: str) -> list[Mapping[str, Any]]:
    entries = (pod.get("status") or {}).get(field)
    return [each for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []
