"""Which services a change concerns, and how soon.

A change of a service's own spec is worked on at once. Changes of its objects come in bursts, so they wait a
twentieth of a second for each other. A changed runtime queues all its services in a lane of their own, and so
do changes of objects, which such a rollout brings by the hundred, and at a start the services that are there:
nobody who changes a service has to wait behind any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from noctaya_api import names

from noctaya_operator.caches import BY_WISH, READ, WRITTEN, Caches, service_of
from noctaya_operator.kinds import LLM_SERVICES, SCALED_OBJECTS
from noctaya_operator.kube.objects import Key, Object, annotations_of, key_of, metadata_of
from noctaya_operator.kube.workqueue import WorkQueue
from noctaya_operator.object_names import ObjectNames
from noctaya_operator.runtime_catalog import RuntimeCatalog

SETTLE: Final = 0.05
"""Seconds that changes of a service's objects wait for each other."""
RUNTIMES: Final = "runtimes"
"""Lane of services whose runtime changed."""
_SUFFIXES: Final = {ref.key.name for ref in ObjectNames(service="", namespace="").all()}
"""What is appended to the name of a service for the names of its objects."""
START: Final = "start"
"""Lane of the services that are there when the operator begins."""
OBJECTS: Final = "objects"
"""Lane of services one of whose objects changed."""
_NOISE: Final = frozenset({"resourceVersion", "generation", "managedFields"})


def route(caches: Caches, runtimes: RuntimeCatalog, queue: WorkQueue[Key]) -> None:
    """Queue services from now on; whatever is cached already is queued too."""
    services = caches.reflectors[LLM_SERVICES].cache

    lane = START

    def service_changed(old: Object | None, new: Object | None) -> None:
        shown = new if new is not None else old
        if shown is not None and (old is None or new is None or _asks_for(old) != _asks_for(new)):
            queue.add(key_of(shown), lane=lane)

    def object_changed(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _meaning(old) == _meaning(new):
            return
        keys = {key for each in (old, new) if each is not None and (key := service_of(each))}
        if old is not None and new is None:
            # Its name is free now, for whichever service waited for it.
            keys |= set(_may_want(key_of(old)))
        for key in keys:
            if services.get(key) is not None:
                queue.add_after(key, SETTLE, lane=OBJECTS)

    def runtime_changed(wishes: set[str]) -> None:
        for wish in sorted(wishes):
            for service in services.by_index(BY_WISH, wish):
                queue.add(key_of(service), lane=RUNTIMES)

    def autoscaler_changed(absent: bool) -> None:
        for service in services:
            queue.add(key_of(service), lane=RUNTIMES)

    runtimes.subscribe(runtime_changed)
    caches.reflectors[LLM_SERVICES].subscribe(service_changed)
    lane = ""
    for resource in (*WRITTEN, *READ):
        caches.reflectors[resource].subscribe(object_changed)
    caches.reflectors[SCALED_OBJECTS].subscribe_absence(autoscaler_changed)


def _may_want(key: Key) -> Iterator[Key]:
    for suffix in _SUFFIXES:
        if key.name.endswith(suffix) and len(key.name) > len(suffix):
            yield Key(key.namespace, key.name.removesuffix(suffix))


def _asks_for(service: Object) -> tuple[Any, ...]:
    metadata = metadata_of(service)
    wish = annotations_of(service).get(names.ANNOTATION_KEEP)
    return (service.get("spec"), metadata.get("uid"), metadata.get("deletionTimestamp"), wish)


def _meaning(obj: Object) -> Mapping[str, Any]:
    metadata = {name: value for name, value in metadata_of(obj).items() if name not in _NOISE}
    status = obj.get("status")
    if isinstance(status, Mapping) and isinstance(status.get("conditions"), list):
        conditions = [
            {name: value for name, value in each.items() if name not in {"lastUpdateTime", "lastProbeTime"}}
            for each in status["conditions"]
            if isinstance(each, Mapping)
        ]
        status = {**status, "conditions": conditions}
    return {**obj, "metadata": metadata, "status": status}
