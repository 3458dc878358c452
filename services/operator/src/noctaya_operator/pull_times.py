"""When the images of a starting Pod were on its node, which only the kubelet's Events tell.

Events are not watched - a cluster has too many. They are asked for once a Pod, when its engine has started
and is not ready yet; without the right to read them the timeline has one time less.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from noctaya_api import names

from noctaya_operator.diagnose import condition_of
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.objects import Object, key_of, uid_of
from noctaya_operator.kube.resources import EVENTS

log = logging.getLogger(__name__)

REMEMBERED: Final = 1024
"""Pods whose answer is kept."""
_TIMES: Final = ("eventTime", "deprecatedLastTimestamp", "deprecatedFirstTimestamp")


class PullTimes:
    """Asks for the Events of Pods and remembers the answers."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: OrderedDict[str, str | None] = OrderedDict()

    async def ended(self, pods: Sequence[Object]) -> Mapping[str, str]:
        """When the images of Pods were there, by the Pod's name, as far as it can be known."""
        found = {}
        for pod in pods:
            if uid_of(pod) not in self._known:
                if not _starting(pod):
                    continue
                self._remember(uid_of(pod), await self._ask(pod))
            if time := self._known.get(uid_of(pod)):
                found[key_of(pod).name] = time
        return found

    async def _ask(self, pod: Object) -> str | None:
        key = key_of(pod)
        selector = f"regarding.kind=Pod,regarding.name={key.name},reason=Pulled"
        try:
            page = await self._client.list(EVENTS, key.namespace, field_selector=selector, limit=50)
        except ApiError as error:
            log.info("events of Pod %s can't be read: %s", key, error)
            return None
        return max(_times(page.items, uid_of(pod)), default=None)

    def _remember(self, uid: str, time: str | None) -> None:
        self._known[uid] = time
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _starting(pod: Object) -> bool:
    if condition_of(pod, "Ready").get("status") == "True":
        return False
    statuses = (pod.get("status") or {}).get("containerStatuses")
    return any(
        isinstance(each, Mapping)
        and each.get("name") == names.CONTAINER_SERVING
        and (each.get("state") or {}).get("running") is not None
        for each in (statuses if isinstance(statuses, list) else ())
    )


def _times(events: Iterable[Mapping[str, Any]], uid: str) -> Iterable[str]:
    for event in events:
        if (event.get("regarding") or {}).get("uid") not in {None, uid}:
            continue
        time = next((event[field] for field in _TIMES if event.get(field)), None)
        if isinstance(time, str):
            yield time
