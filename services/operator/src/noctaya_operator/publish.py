"""Writing a status: only when it says something new, and never over somebody else's change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import Conflict, NotFound
from noctaya_operator.kube.objects import Key, Object, key_of, resource_version_of, uid_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.kube.resources import Resource
from noctaya_operator.metrics import OperatorMetrics

ATTEMPTS: Final = 5
BASE_DELAY: Final = 0.01
"""Seconds before the second attempt (client-go's defaults); doubles."""

Compute = Callable[[Object], Object]
"""From the object as it is to the status it should have."""


class StatusWriter:
    """Writes the status subresource of one kind.

    Args:
        client: the API server.
        reflector: the cache of the kind.
        resource: the kind.
        metrics: counts writes.
    """

    def __init__(
        self, client: KubeClient, reflector: Reflector, resource: Resource, *, metrics: OperatorMetrics
    ) -> None:
        self._client = client
        self._cache = reflector.cache
        self._resource = resource
        self._metrics = metrics
        self._written: dict[Key, Object] = {}
        reflector.subscribe(self._shown)

    def newest(self, key: Key) -> Object | None:
        """The object as the watch or the answer to our last write shows it."""
        return self._written.get(key) or self._cache.get(key)

    async def publish(self, obj: Object, compute: Compute) -> tuple[Object, bool]:
        """Give the object the status that `compute` says.

        Returns the object as it is now, and whether it was written. An object that is gone, or another under
        the same name, is left alone. Raises `ApiError`; `Conflict` after too many of them.
        """
        key, current = key_of(obj), obj
        for attempt in range(ATTEMPTS):
            status = compute(current)
            if same_status(current.get("status"), status):
                return current, False
            try:
                answer = await self._client.update_status({**current, "status": status})
            except NotFound:
                return current, False
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(BASE_DELAY * 2.0**attempt)
                try:
                    current = await self._client.get(self._resource, key.namespace, key.name)
                except NotFound:
                    return obj, False
                if uid_of(current) != uid_of(obj):
                    return obj, False
                continue
            self._metrics.wrote(self._resource, "update_status")
            answer.get("metadata", {}).pop("managedFields", None)
            seen = self._cache.get(key)
            # The watch may be ahead of the answer; to believe the answer then would be to miss the change.
            if seen is None or not _as_new(seen, answer):
                self._written[key] = answer
            return answer, True
        raise AssertionError("the loop returns or raises")

    def _shown(self, old: Object | None, new: Object | None) -> None:
        shown = new if new is not None else old
        if shown is None:
            return
        written = self._written.get(key_of(shown))
        if written is None:
            return
        if new is None or _as_new(shown, written):
            del self._written[key_of(shown)]


def _as_new(seen: Object, written: Object) -> bool:
    """Whether the watch shows at least the state that our write led to."""
    theirs, ours = resource_version_of(seen), resource_version_of(written)
    return not (theirs.isdigit() and ours.isdigit()) or int(theirs) >= int(ours)


def same_status(stored: Any, wanted: Mapping[str, Any]) -> bool:
    """Whether two statuses say the same; the order of conditions says nothing."""
    if not isinstance(stored, Mapping):
        return not wanted
    return _ordered(stored) == _ordered(wanted)


def _ordered(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = status.get("conditions") or []
    by_type = {str(each.get("type")): each for each in conditions if isinstance(each, Mapping)}
    return {**status, "conditions": by_type}
