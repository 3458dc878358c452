"""What the gateways of a service are told, so that nobody waits in vain or without knowing for what.

The gateways see annotations of their own Pod as files. Told are: that an activation can't succeed, once it
lasted a while - a pull that fails once may succeed the next time, and whoever repairs an image within that
time loses no request -; that the weights are still being downloaded, with the time at which that is expected
to end, told anew only when it has changed by much: each time is a write to a Pod; and that the service is put
to sleep, at once and in both places, so that who waits already is told too.

A gateway believes a failure only if it was written after its activation began: what stood there before may be
about another one. A failure that stands is therefore told anew for every activation that begins meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from noctaya_api import names
from noctaya_api.conditions import ConditionStatus, ConditionType
from noctaya_api.keep import Keep, time_text

from noctaya_operator.activation_poller import address_of
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import NotFound
from noctaya_operator.kube.objects import Object, annotations_of, key_of
from noctaya_operator.kube.resources import PODS
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.observe import Observation
from noctaya_operator.plan import ServicePlan
from noctaya_operator.prewarm_state import JobState
from noctaya_operator.reporter import Reporter
from noctaya_operator.status import previous_status, prewarm_failure, size_text
from noctaya_operator.wish_report import asleep_message

PATIENCE: Final = 60.0
"""Seconds a failure has to last; a fifth of the default activation timeout."""
LIMIT: Final = 512
"""Characters of a text: it is shown to clients."""
_OF_A_FAILURE: Final = (names.ANNOTATION_ACTIVATION_FAILURE, names.ANNOTATION_ACTIVATION_FAILURE_OF)
TOLERANCE: Final = (15.0, 0.2)
"""Seconds, and part of what is left, by which an estimate may be wrong without being told anew."""


class GatewayNotices:
    """Keeps the annotations of gateway Pods as they should be.

    Args:
        client: the API server.
        reporter: knows the newest status of services.
        metrics: counts writes.
        now: wall clock.
    """

    def __init__(
        self,
        client: KubeClient,
        reporter: Reporter,
        *,
        metrics: OperatorMetrics,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._reporter = reporter
        self._metrics = metrics
        self._now = now

    async def tell(
        self,
        service: Object,
        plan: ServicePlan,
        *,
        seen: Observation,
        gateways: Sequence[Object],
        going_on: Callable[[str], str | None],
        retry: float | None = None,
    ) -> float | None:
        """Set or clear the annotations; returns seconds until one may have to be set. Raises `ApiError`.

        `going_on` is the id of the activation that goes on at the gateway of an address, None for none;
        `retry` are the seconds until a failed download is tried again, None when it is not.
        """
        if plan.wish.asleep:
            why, wait = _sleeps_on(plan, seen, now=self._now()), 0.0
            prewarming: str | None = asleep_notice(plan.wish.keep)
        else:
            why = _doom(seen)
            wait = self._left(service) if why is not None else 0.0
            prewarming = prewarming_notice(seen, now=self._now())
        failure = why[:LIMIT].strip() if why is not None and wait <= 0 else None
        if failure is not None and seen.held and seen.job is JobState.FAILED and not plan.wish.asleep:
            prewarming = failed_notice(failure, retry, now=self._now())
        for pod in gateways:
            has = annotations_of(pod)
            change = failure_change(has, failure, of=going_on(address_of(pod)))
            known = has.get(names.ANNOTATION_PREWARMING)
            if not says_the_same(known, prewarming, now=self._now()):
                change[names.ANNOTATION_PREWARMING] = prewarming
            if change:
                await self._annotate(pod, change)
        return wait if wait > 0 else None

    def _left(self, service: Object) -> float:
        newest = self._reporter.newest(key_of(service)) or service
        for condition in previous_status(newest).conditions:
            if condition.type == ConditionType.DEGRADED and condition.status is ConditionStatus.TRUE:
                since = datetime.fromisoformat(condition.last_transition_time)
                return PATIENCE - (self._now() - since).total_seconds()
        return PATIENCE

    async def _annotate(self, pod: Object, annotations: Mapping[str, str | None]) -> None:
        key = key_of(pod)
        body = {"metadata": {"annotations": dict(annotations)}}
        try:
            await self._client.patch_merge(
                PODS, key.namespace, key.name, body, field_manager=names.FIELD_MANAGER
            )
        except NotFound:
            return
        self._metrics.wrote(PODS, "patch")


def failure_stands(gateways: Iterable[Object]) -> bool:
    """Whether any gateway is told of a failure."""
    return any(names.ANNOTATION_ACTIVATION_FAILURE in annotations_of(pod) for pod in gateways)


def failure_change(has: Mapping[str, str], failure: str | None, *, of: str | None) -> dict[str, str | None]:
    """What to change of a gateway's annotations so that it knows of a failure, or that there is none.

    Args:
        has: its annotations.
        failure: why its activations can't succeed; None when they may.
        of: the activation that goes on there; None when none is known of.
    """
    if failure is None:
        return {name: None for name in _OF_A_FAILURE if name in has}
    known, told = map(has.get, _OF_A_FAILURE)
    same = known is not None and known.rstrip() == failure
    if same and of in {None, told}:
        return {}
    # A file is written only when it differs; the blank at the end is nobody's business but the kubelet's.
    text = f"{failure} " if known == failure else failure
    change: dict[str, str | None] = {names.ANNOTATION_ACTIVATION_FAILURE: text}
    return change if of in {None, told} else change | {names.ANNOTATION_ACTIVATION_FAILURE_OF: of}


def _doom(seen: Observation) -> str | None:
    """Why an activation can't succeed, None when it may."""
    if seen.backend.ready > 0:
        return None
    if seen.finding.hard:
        return seen.finding.message
    return prewarm_failure(seen.prewarm) if seen.held and seen.job is JobState.FAILED else None


def _sleeps_on(plan: ServicePlan, seen: Observation, *, now: datetime) -> str | None:
    """Why those who wait wait in vain, None when the sleep may end before they give up."""
    keep = plan.wish.keep
    if seen.backend.ready > 0 or keep is None:
        return None
    timeout = timedelta(seconds=plan.service.spec.scaling.activation_timeout.seconds)
    short = keep.until is not None and keep.until - now <= timeout
    return None if short else asleep_message(keep)


def asleep_notice(keep: Keep | None) -> str:
    """What to tell of a service that is put to sleep."""
    notice = {"state": names.NOTICE_ASLEEP, "message": asleep_message(keep)}
    if keep is not None and keep.until is not None:
        notice["readyAt"] = time_text(keep.until)
    return json.dumps(notice, ensure_ascii=False)


def prewarming_notice(seen: Observation, *, now: datetime) -> str | None:
    """What to tell of a download that the service is held for, None when it is not held for one."""
    if not seen.held or seen.job is JobState.FAILED:
        return None
    message = "the weights of the model are being downloaded"
    progress, notice = seen.prewarm, {"message": message}
    if progress is not None and progress.bytes_total:
        notice["message"] += f" ({size_text(progress.bytes_total)})"
    if progress is not None and progress.eta_seconds is not None:
        ready = now + timedelta(seconds=progress.eta_seconds)
        notice["readyAt"] = ready.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(notice, ensure_ascii=False)


def failed_notice(failure: str, retry: float | None, *, now: datetime) -> str:
    """What to tell of a service that has no weights, and when their download is tried again."""
    notice = {"state": names.NOTICE_FAILED, "message": failure}
    if retry is not None:
        notice["readyAt"] = time_text(now + timedelta(seconds=retry))
    return json.dumps(notice, ensure_ascii=False)


def says_the_same(known: str | None, wanted: str | None, *, now: datetime) -> bool:
    """Whether a notice need not be told anew."""
    if known == wanted or known is None or wanted is None:
        return known == wanted
    before, after = _parsed(known), _parsed(wanted)
    if before is None or after is None or any(before[name] != after[name] for name in ("message", "state")):
        return False
    if after["state"] == names.NOTICE_ASLEEP:
        # No estimate: somebody has set this time.
        return before == after
    if before["readyAt"] is None or after["readyAt"] is None:
        # Once told, an estimate is better than none: it is not taken back while the agent is silent.
        return before["readyAt"] is not None or after["readyAt"] is None
    least, part = TOLERANCE
    left = max(0.0, (after["readyAt"] - now).total_seconds())
    return bool(abs((after["readyAt"] - before["readyAt"]).total_seconds()) <= max(least, part * left))


def _parsed(notice: str) -> dict[str, Any] | None:
    try:
        values = json.loads(notice)
        ready = values.get("readyAt")
        return {
            "state": values.get("state"),
            "message": values["message"],
            "readyAt": ready and datetime.fromisoformat(ready),
        }
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
