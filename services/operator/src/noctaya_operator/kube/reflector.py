"""A cache of one kind that follows the server, and handlers that hear every difference.

After every list the cache is compared with what was listed, so a change or deletion that happened while the
connection was gone is still delivered. A kind the server does not serve is a state, not an error: its cache
is empty and synced, and the server is asked again within a minute.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable

from noctaya_operator.kube.cache import Cache, IndexFunction
from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import ApiError
from noctaya_operator.kube.listwatch import ListWatch, Timing
from noctaya_operator.kube.objects import Key, MalformedObject, Object, key_of, uid_of
from noctaya_operator.kube.resources import Resource

log = logging.getLogger(__name__)

Handler = Callable[[Object | None, Object | None], None]
"""Called with (old, new): creation (None, new), change (old, new), deletion (old, None). Must be quick."""


def without_managed_fields(obj: Object) -> Object:
    """The default of what a cache keeps: field ownership is a third of an object and nobody here reads it."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return obj


class Reflector:
    """Keeps `cache` equal to the server's objects of one kind while `run` runs.

    Args:
        client: the API server.
        resource: the kind.
        namespaces: watch these only, one stream each; None for the whole cluster.
        label_selector: keep only matching objects.
        keep: what of an object is kept, to save memory; may change its argument.
        rng: randomness for jitter.
        timing: how long things take.
        on_failure: called with every error of the server, for metrics.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        namespaces: Iterable[str] | None = None,
        label_selector: str | None = None,
        keep: Callable[[Object], Object] = without_managed_fields,
        rng: random.Random | None = None,
        timing: Timing | None = None,
        on_failure: Callable[[Resource, ApiError], None] | None = None,
    ) -> None:
        self.resource = resource
        self.cache = Cache()
        self.synced = asyncio.Event()
        """Set once everything was listed, or the kind found absent; never cleared."""
        self._keep = keep
        self._on_failure = on_failure or (lambda resource, error: None)
        self._handlers: list[Handler] = []
        self._absence_handlers: list[Callable[[bool], None]] = []
        self._absent = False
        everywhere = namespaces is None or not resource.namespaced
        scopes: list[str | None] = [None] if everywhere else [*sorted(set(namespaces or ()))]
        self._unsynced = set(scopes)
        self._streams = [
            ListWatch(
                client,
                resource,
                namespace=scope,
                sink=_Scope(self, scope),
                rng=rng or random.Random(),  # noqa: S311 - jitter, not a secret
                timing=timing or Timing(),
                label_selector=label_selector,
            )
            for scope in scopes
        ]

    @property
    def absent(self) -> bool:
        """Whether the server does not serve the kind, as last seen."""
        return self._absent

    def add_index(self, name: str, function: IndexFunction) -> None:
        """See `Cache.add_index`."""
        self.cache.add_index(name, function)

    def subscribe(self, handler: Handler) -> None:
        """Call `handler` for every difference from now on; what is cached already is delivered as created."""
        self._handlers.append(handler)
        for obj in self.cache:
            _call(handler, None, obj)

    def subscribe_absence(self, handler: Callable[[bool], None]) -> None:
        """Call `handler(absent)` whenever the kind disappears or appears."""
        self._absence_handlers.append(handler)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as running:
            for stream in self._streams:
                running.create_task(stream.run(), name=f"reflector of {self.resource}")

    def _store(self, key: Key, obj: Object) -> None:
        old = self.cache.get(key)
        if old is not None:
            if uid_of(old) != uid_of(obj):
                # Deleted and made anew while nobody was looking: two events, not one change.
                self._forget(key)
                old = None
            elif old == obj:
                return
        self.cache.put(key, obj)
        self._deliver(old, obj)

    def _forget(self, key: Key) -> None:
        old = self.cache.remove(key)
        if old is not None:
            self._deliver(old, None)

    def _kept(self, obj: Object) -> Object | None:
        try:
            kept = self._keep(obj)
            key_of(kept)
        except MalformedObject as error:
            log.warning("ignoring an object of %s: %s", self.resource, error)
            return None
        except Exception:  # one object can't hurt another
            log.exception("ignoring an object of %s that can't be kept", self.resource)
            return None
        return kept

    def _deliver(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            _call(handler, old, new)

    def _set_absent(self, absent: bool) -> None:
        if absent == self._absent:
            return
        self._absent = absent
        log.info("%s %s", self.resource, "is not served" if absent else "is served now")
        for handler in self._absence_handlers:
            _call(handler, absent)


class _Scope:
    """What one stream of a reflector writes to: the objects of its namespace, or all."""

    def __init__(self, reflector: Reflector, namespace: str | None) -> None:
        self._reflector = reflector
        self._namespace = namespace

    def kept(self, obj: Object) -> Object | None:
        return self._reflector._kept(obj)

    def listed(self, items: list[Object]) -> None:
        reflector = self._reflector
        objects = {key_of(obj): obj for obj in items}
        for key in self._keys():
            if key not in objects:
                reflector._forget(key)
        for key, obj in objects.items():
            reflector._store(key, obj)
        reflector._set_absent(False)
        self._synced()

    def changed(self, event_type: str, obj: Object) -> None:
        kept = self._reflector._kept(obj)
        if kept is None:
            return
        if event_type == "DELETED":
            self._reflector._forget(key_of(kept))
        else:
            self._reflector._store(key_of(kept), kept)

    def vanished(self) -> None:
        self._reflector._set_absent(True)
        for key in self._keys():
            self._reflector._forget(key)
        self._synced()

    def failed(self, error: ApiError) -> None:
        self._reflector._on_failure(self._reflector.resource, error)

    def _keys(self) -> list[Key]:
        keys = self._reflector.cache.keys()
        return [key for key in keys if self._namespace in {None, key.namespace}]

    def _synced(self) -> None:
        self._reflector._unsynced.discard(self._namespace)
        if not self._reflector._unsynced:
            self._reflector.synced.set()


def _call(handler: Callable[..., None], *arguments: object) -> None:
    try:
        handler(*arguments)
    except Exception:  # a faulty handler must not end the watch of its kind
        log.exception("a handler failed")
