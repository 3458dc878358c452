"""Objects of one kind in memory, with indexes.

What is read from a cache is shared and must not be changed; copy before changing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from noctaya_operator.kube.objects import Key, Object

log = logging.getLogger(__name__)

IndexFunction = Callable[[Object], Iterable[str]]
"""The values an object is found under in an index."""


class Cache:
    """Filled by a reflector, read by everybody else."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._namespaces: dict[str, dict[Key, Object]] = {}
        self._indexes: dict[str, _Index] = {}

    def get(self, key: Key) -> Object | None:
        """The object, None when there is none."""
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        """All objects, or those of one namespace."""
        if namespace is None:
            return list(self._objects.values())
        return list(self._namespaces.get(namespace, {}).values())

    def keys(self) -> Sequence[Key]:
        """All keys."""
        return list(self._objects)

    def by_index(self, name: str, value: str) -> Sequence[Object]:
        """Objects the index function `name` gave `value` for, in key order. KeyError for an unknown index."""
        keys = self._indexes[name].keys.get(value, ())
        return [self._objects[key] for key in sorted(keys)]

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index; objects already here are taken up. ValueError when the name is taken."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already")
        index = _Index(function)
        for key, obj in self._objects.items():
            index.add(key, obj)
        self._indexes[name] = index

    def put(self, key: Key, obj: Object) -> Object | None:
        """Store, and return what was there before. For the reflector."""
        old = self._objects.get(key)
        for index in self._indexes.values():
            index.remove(key)
            index.add(key, obj)
        self._objects[key] = obj
        self._namespaces.setdefault(key.namespace, {})[key] = obj
        return old

    def remove(self, key: Key) -> Object | None:
        """Forget, and return what was there. For the reflector."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        for index in self._indexes.values():
            index.remove(key)
        kept = self._namespaces[key.namespace]
        del kept[key]
        if not kept:
            del self._namespaces[key.namespace]
        return old

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))


class _Index:
    """Keys by value; the values of a key are remembered, whatever the function says later."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._values: dict[Key, tuple[str, ...]] = {}
        self.keys: dict[str, set[Key]] = {}

    def add(self, key: Key, obj: Object) -> None:
        try:
            values = tuple(self._function(obj))
        except Exception:  # an object the function can't read is found under nothing
            log.exception("%s can't be indexed", key)
            values = ()
        self._values[key] = values
        for value in values:
            self.keys.setdefault(value, set()).add(key)

    def remove(self, key: Key) -> None:
        for value in self._values.pop(key, ()):
            kept = self.keys.get(value)
            if kept is not None:
                kept.discard(key)
                if not kept:
                    del self.keys[value]
