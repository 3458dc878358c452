"""What the backend's Deployment, Pods and claim say about why it is not ready, in one reason.

The reasons and their precedence are contract; the lowest one over all Pods counts, ties are broken by the
message, so the same cluster always gives the same answer. Messages hold nothing that changes by itself, such
as a growing back-off: each change would be a write of the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import ObservationReason

from noctaya_operator.kube.objects import Object, deleting, key_of
from noctaya_operator.object_names import ObjectNames
from noctaya_operator.pull_failure import pull_failure
from noctaya_operator.refusal import forbidden_user, refusal

_ORDER: Final = {reason: number for number, reason in enumerate(ObservationReason)}
RESTARTS: Final = 2
"""Restarts from which a container counts as failing even between two crashes."""


@dataclass(frozen=True, order=True, kw_only=True)
class Finding:
    """One observation; the lesser one is the more urgent."""

    rank: int
    message: str
    reason: ObservationReason

    @property
    def hard(self) -> bool:
        """Whether somebody has to act."""
        return self.reason.hard


def finding(reason: ObservationReason, message: str) -> Finding:
    """An observation with its rank."""
    return Finding(rank=_ORDER[reason], message=message, reason=reason)


@dataclass(frozen=True, kw_only=True)
class BackendState:
    """The backend as the caches show it."""

    names: ObjectNames
    deployment: Object | None
    pods: Sequence[Object]
    """Active Pods of the runtime in use."""
    claim: Object | None
    storage_classes: Mapping[str, bool] | None
    """Names of the classes, and whether each is the default; None when they can't be read."""

    @property
    def desired(self) -> int:
        """Replicas the Deployment is to have."""
        return _count(self.deployment, "spec", "replicas")

    @property
    def replicas(self) -> int:
        """Replicas it has."""
        return _count(self.deployment, "status", "replicas")

    @property
    def ready(self) -> int:
        """Replicas that take requests."""
        return _count(self.deployment, "status", "readyReplicas")

    @property
    def present(self) -> bool:
        """Whether there is anything of a backend."""
        return self.replicas > 0 or self.ready > 0 or bool(self.pods)


def active(pod: Object) -> bool:
    """Whether a Pod counts: neither going away nor over."""
    phase = (pod.get("status") or {}).get("phase")
    return not deleting(pod) and phase not in {"Succeeded", "Failed"}


def diagnose_backend(state: BackendState) -> Finding:
    """The observation of the backend."""
    found = min([*_of_deployment(state), *_of_claim(state), *map(diagnose_pod, state.pods)], default=None)
    if state.present:
        condition = condition_of(state.deployment, "Progressing")
        if condition.get("status") == "False" and condition.get("reason") == "ProgressDeadlineExceeded":
            cause = f": {found.message}" if found is not None and found.hard else ""
            return finding(
                ObservationReason.PROGRESS_DEADLINE_EXCEEDED,
                f"Deployment {state.names.backend.key.name} made no progress within its deadline{cause}",
            )
    if found is None:
        return finding(
            ObservationReason.ACTIVATING,
            f"Deployment {state.names.backend.key.name} has no Pod yet",
        )
    return found


def diagnose_pod(pod: Object, *, container: str = names.CONTAINER_SERVING) -> Finding:
    """The observation of one active Pod whose main container has the given name."""
    name, status = key_of(pod).name, pod.get("status") or {}
    if condition_of(pod, "Ready").get("status") == "True":
        # What once went wrong is over.
        return finding(ObservationReason.STARTING, f"Pod {name} is ready")
    found = [
        each for entry in _statuses(status, "initContainerStatuses") for each in _of_init(name, pod, entry)
    ]
    found += [
        each
        for entry in _statuses(status, "containerStatuses")
        if entry.get("name") == container
        for each in _of_main(name, pod, entry)
    ]
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        why = scheduled.get("message") or "no node fits"
        found.append(finding(ObservationReason.SCHEDULING_DELAYED, f"Pod {name} finds no node: {why}"))
    found.append(finding(ObservationReason.STARTING, f"Pod {name} is being started"))
    return min(found)


def condition_of(obj: Object | None, kind: str) -> Mapping[str, Any]:
    """A condition of an object, empty when it has none of that type."""
    status = (obj or {}).get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for entry in conditions if isinstance(conditions, list) else ():
        if isinstance(entry, Mapping) and entry.get("type") == kind:
            return entry
    return {}


def _of_deployment(state: BackendState) -> Iterator[Finding]:
    failure = condition_of(state.deployment, "ReplicaFailure")
    if failure.get("status") != "True" or state.desired == 0 or state.ready >= state.desired:
        return
    said = str(failure.get("message") or failure.get("reason") or "the API server refused its Pods")
    reason, message = refusal(said)
    yield finding(reason, f"Pods of Deployment {state.names.backend.key.name} can't be created: {message}")


def _of_claim(state: BackendState) -> Iterator[Finding]:
    claim, classes = state.claim, state.storage_classes
    if claim is None or classes is None or not (state.desired or state.pods):
        return
    if state.ready:  # a Pod that serves has its volume: what was wrong with the claim is over (O7)
        return
    if (claim.get("status") or {}).get("phase") != "Pending":
        return
    spec, name = claim.get("spec") or {}, key_of(claim).name
    wanted = spec.get("storageClassName")
    if wanted is None and not any(classes.values()):
        yield finding(
            ObservationReason.STORAGE_CLASS_MISSING,
            f"claim {name} names no StorageClass and the cluster has no default one; "
            "set cache.storageClassName",
        )
    elif wanted and wanted not in classes and not spec.get("volumeName"):
        yield finding(
            ObservationReason.STORAGE_CLASS_MISSING,
            f"claim {name} waits for the StorageClass {wanted}, which does not exist",
        )


def _of_init(name: str, pod: Object, status: Mapping[str, Any]) -> Iterator[Finding]:
    container = str(status.get("name"))
    yield from _of_pull(name, pod, status)
    waiting, last = _state(status, "waiting"), _terminated(status)
    if waiting.get("reason") == "CrashLoopBackOff" or (
        _restarts(status) >= RESTARTS and not _state(status, "running") and last.get("exitCode") != 0
    ):
        yield finding(
            ObservationReason.INIT_CONTAINER_FAILED,
            f"init container {container} of Pod {name} fails{_exit(last)}",
        )
    elif waiting.get("reason") in _CREATION_ERRORS:
        yield finding(
            ObservationReason.INIT_CONTAINER_FAILED,
            f"init container {container} of Pod {name} can't be created: "
            f"{waiting.get('message') or waiting['reason']}",
        )


def _of_main(name: str, pod: Object, status: Mapping[str, Any]) -> Iterator[Finding]:
    container, last = str(status.get("name")), _terminated(status)
    yield from _of_pull(name, pod, status)
    if last.get("reason") == "OOMKilled":
        yield finding(
            ObservationReason.OOM_KILLED,
            f"container {container} of Pod {name} ran out of memory; raise resources.memory",
        )
    waiting = _state(status, "waiting")
    if waiting.get("reason") == "CrashLoopBackOff":
        yield finding(
            ObservationReason.CRASH_LOOP_BACK_OFF,
            f"container {container} of Pod {name} keeps crashing{_exit(last)}; see its previous log",
        )
    elif waiting.get("reason") in _CREATION_ERRORS:
        said = str(waiting.get("message") or waiting["reason"])
        user = forbidden_user(said)
        yield finding(
            ObservationReason.CRASH_LOOP_BACK_OFF if user is None else ObservationReason.POD_SECURITY_DENIED,
            f"container {container} of Pod {name} can't be created: {user or said}",
        )
    if _restarts(status) >= RESTARTS:
        yield finding(
            ObservationReason.CONTAINER_RESTARTING,
            f"container {container} of Pod {name} was restarted repeatedly{_exit(last)}; "
            "see its previous log",
        )
    if _state(status, "running") and not status.get("ready"):
        yield finding(
            ObservationReason.MODEL_LOADING,
            f"container {container} of Pod {name} runs and is not ready yet",
        )


_CREATION_ERRORS: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)


def _of_pull(name: str, pod: Object, status: Mapping[str, Any]) -> Iterator[Finding]:
    why = pull_failure(_state(status, "waiting"))
    if why is None:
        return
    container = str(status.get("name"))
    images = {each.get("name"): each.get("image") for each in (pod.get("spec") or {}).get("containers") or ()}
    image = images.get(container) or status.get("image") or "its image"
    yield finding(
        ObservationReason.IMAGE_PULL_FAILED,
        f"image {image} of container {container} in Pod {name} can't be pulled{why}",
    )


def _statuses(status: Mapping[str, Any], field: str) -> Iterable[Mapping[str, Any]]:
    entries = status.get(field)
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _state(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    state = status.get("state")
    found = state.get(kind) if isinstance(state, Mapping) else None
    if kind == "running":
        return {"running": True} if found is not None else {}
    return found if isinstance(found, Mapping) else {}


def _terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The current termination, or the last one."""
    now = _state(status, "terminated")
    if now:
        return now
    last = status.get("lastState")
    found = last.get("terminated") if isinstance(last, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _restarts(status: Mapping[str, Any]) -> int:
    count = status.get("restartCount")
    return count if isinstance(count, int) else 0


def _exit(terminated: Mapping[str, Any]) -> str:
    code = terminated.get("exitCode")
    return f" (last exit code {code})" if isinstance(code, int) else ""


def _count(obj: Object | None, part: str, field: str) -> int:
    section = (obj or {}).get(part)
    value = section.get(field) if isinstance(section, Mapping) else None
    return value if isinstance(value, int) else 0
