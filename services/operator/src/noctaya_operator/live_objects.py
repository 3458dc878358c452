"""The newest we know of each object of a service: what the watch showed, or what a write of ours returned.

A watch lags behind our own writes by milliseconds. Without the answers to those writes the next pass would
write the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import NotFound
from noctaya_operator.kube.objects import Object, key_of, resource_version_of, uid_of
from noctaya_operator.kube.reflector import Reflector
from noctaya_operator.kube.resources import Resource
from noctaya_operator.object_names import ObjectRef


class LiveObjects:
    """Reads objects by reference.

    Args:
        client: asked for what no cache holds: objects without our labels, and Secrets, which are not cached.
        reflectors: the caches by kind.
        keep: what is remembered of a written object, per kind; the same as its reflector's.
    """

    def __init__(
        self,
        client: KubeClient,
        reflectors: Mapping[Resource, Reflector],
        *,
        keep: Callable[[Object], Object],
    ) -> None:
        self._client = client
        self._reflectors = reflectors
        self._keep = keep
        self._written: dict[ObjectRef, Object] = {}
        for resource, reflector in reflectors.items():
            reflector.subscribe(_Forgetter(resource, self._written))

    def cached(self, ref: ObjectRef) -> Object | None:
        """The object as far as it is known without asking."""
        written = self._written.get(ref)
        if written is not None:
            return written
        reflector = self._reflectors.get(ref.resource)
        return reflector.cache.get(ref.key) if reflector is not None else None

    def caches(self, resource: Resource) -> bool:
        """Whether everything of ours of a kind is cached."""
        return resource in self._reflectors

    async def get(self, ref: ObjectRef) -> Object | None:
        """The object, asked for when no cache holds it; None when there is none. Raises `ApiError`."""
        known = self.cached(ref)
        if known is not None:
            return known
        return await self.fetch(ref)

    async def fetch(self, ref: ObjectRef) -> Object | None:
        """The object as the server has it now. Raises `ApiError`."""
        try:
            return await self._client.get(ref.resource, ref.key.namespace, ref.key.name)
        except NotFound:
            return None

    def wrote(self, ref: ObjectRef, answer: Object) -> Object:
        """Remember the answer to a write until the watch has caught up; returns what is remembered."""
        kept = self._keep(answer)
        reflector = self._reflectors.get(ref.resource)
        if reflector is None:
            return kept
        seen = reflector.cache.get(ref.key)
        if seen is None or not _as_new(seen, kept):
            self._written[ref] = kept
        return kept

    def forget(self, ref: ObjectRef) -> None:
        """The object is known to be gone or to have changed."""
        self._written.pop(ref, None)


class _Forgetter:
    def __init__(self, resource: Resource, written: dict[ObjectRef, Object]) -> None:
        self._resource = resource
        self._written = written

    def __call__(self, old: Object | None, new: Object | None) -> None:
        shown = new if new is not None else old
        if shown is None or not self._written:
            return
        ref = ObjectRef(resource=self._resource, key=key_of(shown))
        written = self._written.get(ref)
        if written is None:
            return
        gone = new is None and uid_of(shown) == uid_of(written)
        if gone or (new is not None and _as_new(new, written)):
            del self._written[ref]


def _as_new(seen: Object, written: Object) -> bool:
    """Whether the watch shows at least the state that our write led to."""
    theirs, ours = resource_version_of(seen), resource_version_of(written)
    if theirs.isdigit() and ours.isdigit():
        return int(theirs) >= int(ours)
    return uid_of(seen) == uid_of(written) and theirs == ours
