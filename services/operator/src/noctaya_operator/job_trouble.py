"""Why a Job has no Pod: a quota, an admission plugin. Unlike a Deployment a Job has no condition for it.

Only Events tell, and they are not watched. They are asked for while a running Job is without a Pod, less and
less often.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.objects import Object, key_of, metadata_of, uid_of
from noctaya_operator.kube.resources import EVENTS
from noctaya_operator.prewarm_state import JobState, job_state
from noctaya_operator.refusal import refusal

log = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""Seconds a new Job gets to have a Pod."""
_PREFIX: Final = "Error creating: "
AGAIN: Final = (30.0, 600.0)
"""Seconds until a Job without a Pod is looked at again, at first and at most; it grows with the Job's age."""


class JobTroubles:
    """Asks for the Events of Jobs that have no Pod.

    Args:
        client: the API server.
        now: wall clock.
    """

    def __init__(self, client: KubeClient, *, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now

    async def of(self, job: Object | None, *, pods: int) -> tuple[str | None, float | None]:
        """Why the Job can't have a Pod, if so, and seconds until to ask again."""
        if job is None or pods or job_state(job) is not JobState.RUNNING:
            return None, None
        created = metadata_of(job).get("creationTimestamp")
        age = (self._now() - datetime.fromisoformat(created)).total_seconds() if created else 0.0
        if age < PATIENCE:
            return None, PATIENCE - age
        shortest, longest = AGAIN
        return await self._ask(job), min(longest, max(shortest, age / 4))

    async def _ask(self, job: Object) -> str | None:
        key = key_of(job)
        selector = f"regarding.kind=Job,regarding.name={key.name},reason=FailedCreate"
        try:
            page = await self._client.list(EVENTS, key.namespace, field_selector=selector, limit=50)
        except ApiError as error:
            log.info("events of Job %s can't be read: %s", key, error)
            return None
        notes = [
            (str(event.get("deprecatedLastTimestamp") or event.get("eventTime") or ""), str(event["note"]))
            for event in page.items
            if event.get("note") and (event.get("regarding") or {}).get("uid") in {None, uid_of(job)}
        ]
        if not notes:
            return None
        _, why = refusal(max(notes)[1].removeprefix(_PREFIX))
        return f"Job {key.name} can't create its Pod: {why}"
