"""`noctaya wake|pin|unpin|sleep SERVICE`: the annotation `keep` of a service, changed and waited for.

Nothing but that annotation is written; the operator does the rest through KEDA. What another person changes
at the same time is never overwritten unseen: a change is made to the object that was read, or is decided
anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from noctaya_api import names
from noctaya_api.conditions import ConditionType
from noctaya_api.duration import parse_duration
from noctaya_api.keep import Keep, KeepError, asleep, awake, keep_of, time_text

from noctaya_cli.cluster.absent import Lister, absent
from noctaya_cli.cluster.access import (
    ClusterError,
    NotAllowed,
    NotThere,
    Object,
    Outdated,
    service_path,
)
from noctaya_cli.cluster.remedies import remedy
from noctaya_cli.cluster.service_view import ServiceView, view_of

ATTEMPTS: Final = 5
"""Times a change is decided anew because somebody else changed the service."""
INTERVAL: Final = 1.0
"""Seconds between two looks at the service while it is waited for."""
PATIENCE: Final = 60.0
"""Seconds a service may be degraded before waiting for it ends; gateways are told after as long."""
_USUAL: Final = "5m"
"""Default of `activationTimeout` and of `scaleDownStabilization`."""


class Writer(Lister, Protocol):
    """What these commands ask of a cluster."""

    def get(self, path: str) -> Object:
        """One object."""

    def merge(self, path: str, change: dict[str, Any]) -> Object:
        """Change it."""

    def now(self) -> datetime:
        """The time by the cluster's clock."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A service as it is when a change is decided."""

    view: ServiceView
    spec: Object
    keep: Keep | None
    """What holds now."""
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a change."""

    namespace: str
    name: str
    keep: Keep | None
    """What holds from now on; None: demand decides."""
    changed: bool


Decide = Callable[[Found], Keep | None]


class WaitedInVain(ClusterError):
    """The service did not become as it was wanted."""


class TimeIsUp(WaitedInVain):
    """Not within the time that was given."""


def wake(lasts: float | None) -> Decide:
    """At least one replica for so many seconds; by default as long as one cold request would bring.

    What is kept longer, or with more replicas, stays so.
    """

    def decide(found: Found) -> Keep:
        until = _after(found.now, _as_a_request(found.spec) if lasts is None else lasts)
        known = found.keep
        if known is None or known.asleep:
            return awake(until=until)
        if known.until is None or known.until >= until:
            return known
        return awake(known.replicas, until=until)

    return decide


def pin(replicas: int, lasts: float | None) -> Decide:
    """At least so many replicas, for so many seconds or until it is taken back."""

    def decide(found: Found) -> Keep:
        if replicas > found.view.maximum:
            raise ClusterError(
                f"{found.view.name} may have {found.view.maximum} at most (spec.scaling.max): raise that, or "
                "pin no more"
            )
        return awake(replicas, until=_end(found.now, lasts))

    return decide


def sleep(lasts: float | None) -> Decide:
    """No replica, for so many seconds or until it is taken back."""
    return lambda found: asleep(until=_end(found.now, lasts))


def unpin(_found: Found) -> None:
    """Demand decides."""


def change(cluster: Writer, namespace: str, name: str, decide: Decide) -> Outcome:
    """Write what is decided, if it is something new.

    Raises:
        ClusterError: the service is not there, may not be changed, or the change makes no sense.
    """
    path = service_path(namespace, name)
    for _ in range(ATTEMPTS):
        raw = _read(cluster, namespace, name)
        metadata = raw.get("metadata") or {}
        stored = (metadata.get("annotations") or {}).get(names.ANNOTATION_KEEP)
        found = Found(
            view=view_of(raw),
            spec=raw.get("spec") or {},
            keep=_in_force(metadata, cluster.now()),
            now=cluster.now(),
        )
        wanted = decide(found)
        outcome = Outcome(
            namespace=namespace,
            name=name,
            keep=wanted,
            changed=wanted != found.keep or (wanted is None and stored is not None),
        )
        if not outcome.changed:
            return outcome
        text = wanted.text if wanted is not None else None
        body = {
            "metadata": {
                "resourceVersion": metadata.get("resourceVersion"),
                "annotations": {names.ANNOTATION_KEEP: text},
            }
        }
        try:
            cluster.merge(path, body)
        except Outdated:
            continue
        except NotAllowed as error:
            raise NotAllowed(
                f"{error}; it takes the right to get and patch llmservices.{names.GROUP} in namespace "
                f"{namespace}"
            ) from error
        return outcome
    raise Outdated(f"{namespace}/{name} changes all the time; try again")


def follow(
    cluster: Writer,
    outcome: Outcome,
    *,
    timeout: float,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> Iterator[str]:
    """A line whenever something changes, until the service is as it was wanted.

    `clock` is monotonic seconds, `pause` sleeps. Raises `WaitedInVain`, `TimeIsUp`.
    """
    where, keep = f"{outcome.namespace}/{outcome.name}", outcome.keep
    begun, degraded_since, told = clock(), None, ""
    while True:
        raw = _read(cluster, outcome.namespace, outcome.name)
        metadata = raw.get("metadata") or {}
        now = cluster.now()
        if _in_force(metadata, now) != keep:
            over = keep is not None and not keep.holds(now)
            raise WaitedInVain(
                f"{where}: it is over before it was reached" if over else _overruled(where, metadata)
            )
        line, done = _look(raw, outcome)
        if line != told:
            told = line
            yield line
        if done:
            return
        view = view_of(raw)
        broken = next((each for each in view.problems if each.condition == ConditionType.DEGRADED), None)
        degraded_since = (degraded_since or clock()) if broken is not None else None
        if broken is not None and degraded_since is not None and clock() - degraded_since >= PATIENCE:
            advice = remedy(broken.reason)
            action = f": {advice.action.replace('SERVICE', view.name)}" if advice else ""
            raise WaitedInVain(f"{where}: {broken.reason}: {broken.message}{action}")
        if clock() - begun >= timeout:
            raise TimeIsUp(f"{where}: not within {timeout:g} s; last seen: {line}")
        pause(min(INTERVAL, max(0.0, begun + timeout - clock())))


def sentence(outcome: Outcome) -> str:
    """What holds from now on."""
    where, keep = f"{outcome.namespace}/{outcome.name}", outcome.keep
    if keep is None:
        said = "follows demand again" if outcome.changed else "follows demand; nothing else was asked of it"
        return f"{where} {said}."
    end = f" until {time_text(keep.until)}" if keep.until is not None else ""
    already = "" if outcome.changed else " already"
    if keep.asleep:
        waking = "" if keep.until is not None else "; `noctaya wake` or `unpin` ends that"
        return f"{where} is{already} put to sleep{end}: no replica, requests are refused{waking}."
    lasting = "" if keep.until is not None else " until `noctaya unpin`"
    plural = "s" if keep.replicas != 1 else ""
    return f"{where} is{already} kept awake with at least {keep.replicas} replica{plural}{end}{lasting}."


def json_of(outcome: Outcome, *, reached: bool | None) -> dict[str, Any]:
    """The same for programs; `reached` is None when it was not waited for."""
    keep = outcome.keep
    shown = None
    if keep is not None:
        until = time_text(keep.until) if keep.until is not None else None
        shown = {"state": str(keep.state), "replicas": keep.replicas, "until": until}
    return {
        "namespace": outcome.namespace,
        "name": outcome.name,
        "keep": shown,
        "changed": outcome.changed,
        "reached": reached,
    }


def _look(service: Object, outcome: Outcome) -> tuple[str, bool]:
    status = service.get("status") or {}
    keep = outcome.keep
    seen = status.get("keep") or {}
    if keep is None:
        return ("demand decides", True) if not seen else ("the operator has not seen it yet", False)
    until = time_text(keep.until) if keep.until is not None else None
    known = (seen.get("state"), seen.get("replicas"), seen.get("until"))
    if known != (str(keep.state), min(keep.replicas, view_of(service).maximum), until):
        return "the operator has not seen it yet", False
    conditions = [each for each in status.get("conditions") or () if each.get("type") == ConditionType.KEPT]
    condition = conditions[0] if conditions else {}
    problem = next((p for p in view_of(service).problems if p.condition == ConditionType.DEGRADED), None)
    line = f"{status.get('phase') or 'Unknown'}: {condition.get('message') or 'on its way'}"
    if problem is not None:
        line += f" ({problem.reason}: {problem.message})"
    return " ".join(line.split()), condition.get("status") == "True"


def _read(cluster: Writer, namespace: str, name: str) -> Object:
    try:
        return cluster.get(service_path(namespace, name))
    except NotThere as error:
        raise absent(cluster, namespace, name) from error


def _in_force(metadata: Object, now: datetime) -> Keep | None:
    try:
        keep = keep_of(metadata.get("annotations") or {})
    except KeepError:
        return None
    return keep if keep is not None and keep.holds(now) else None


def _overruled(where: str, metadata: Object) -> str:
    text = (metadata.get("annotations") or {}).get(names.ANNOTATION_KEEP)
    said = f"asks for {text!r} now" if text is not None else "took it back"
    return f"{where}: somebody else {said}"


def _end(now: datetime, lasts: float | None) -> datetime | None:
    return None if lasts is None else _after(now, lasts)


def _after(now: datetime, seconds: float) -> datetime:
    """A whole second, as the annotation has it, and none too early."""
    return (now + timedelta(seconds=seconds + 1)).replace(microsecond=0)


def _as_a_request(spec: Object) -> float:
    """Seconds a cold request keeps a service up at most, while nobody follows: it may take
    `activationTimeout` to come up, and goes after `scaleDownStabilization`."""
    scaling = spec.get("scaling") or {}
    try:
        return sum(
            parse_duration(str(scaling.get(field) or _USUAL))
            for field in ("activationTimeout", "scaleDownStabilization")
        )
    except ValueError as error:
        raise ClusterError(f"spec.scaling: {error}; say how long with --for") from error
