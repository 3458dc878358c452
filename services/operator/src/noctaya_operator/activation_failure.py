"""Telling the gateways of a service that its activation can't succeed, so that nobody waits in vain.

The gateways see an annotation of their own Pod as a file. A failure is told once it lasted a while: a pull
that fails once may succeed the next time, and whoever repairs an image within that time loses no request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from noctaya_api import names
from noctaya_api.conditions import ConditionStatus, ConditionType

from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import NotFound
from noctaya_operator.kube.objects import Object, annotations_of, key_of
from noctaya_operator.kube.resources import PODS
from noctaya_operator.metrics import OperatorMetrics
from noctaya_operator.observe import Observation
from noctaya_operator.reporter import Reporter
from noctaya_operator.status import previous_status

PATIENCE: Final = 60.0
"""Seconds a failure has to last; a fifth of the default activation timeout."""
LIMIT: Final = 512
"""Characters of the reason: it is shown to clients."""


class ActivationFailures:
    """Keeps the annotation of gateway Pods as it should be.

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

    async def tell(self, service: Object, seen: Observation, gateways: Sequence[Object]) -> float | None:
        """Set or clear the annotation; returns seconds until it may have to be set. Raises `ApiError`."""
        doomed = seen.backend.ready == 0 and seen.finding.hard
        wait = self._left(service) if doomed else 0.0
        text = seen.finding.message[:LIMIT] if doomed and wait <= 0 else None
        for pod in gateways:
            if annotations_of(pod).get(names.ANNOTATION_ACTIVATION_FAILURE) != text:
                await self._annotate(pod, text)
        return wait if wait > 0 else None

    def _left(self, service: Object) -> float:
        newest = self._reporter.newest(key_of(service)) or service
        for condition in previous_status(newest).conditions:
            if condition.type == ConditionType.DEGRADED and condition.status is ConditionStatus.TRUE:
                since = datetime.fromisoformat(condition.last_transition_time)
                return PATIENCE - (self._now() - since).total_seconds()
        return PATIENCE

    async def _annotate(self, pod: Object, text: str | None) -> None:
        key = key_of(pod)
        body = {"metadata": {"annotations": {names.ANNOTATION_ACTIVATION_FAILURE: text}}}
        try:
            await self._client.patch_merge(
                PODS, key.namespace, key.name, body, field_manager=names.FIELD_MANAGER
            )
        except NotFound:
            return
        self._metrics.wrote(PODS, "patch")
