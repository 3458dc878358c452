"""Versioned objects with a bounded history, the part of an API server that etcd and its watch cache are."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from noctaya_operator.kube.objects import Key
from noctaya_operator.kube.resources import Resource

Object = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One write: `old` is None for a creation, `new` is None for a removal."""

    version: int
    resource: Resource
    key: Key
    old: Object | None
    new: Object | None


class TooOld(Exception):
    """The history does not reach back that far."""


class Store:
    """Objects by kind and key; every write takes the next resourceVersion of one sequence."""

    def __init__(self, *, history: int = 1000) -> None:
        self.version = 1
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._history: deque[Change] = deque(maxlen=history)
        self._oldest = 0
        self._changed = asyncio.Event()

    def get(self, resource: Resource, key: Key) -> Object | None:
        """A copy of the object."""
        return copy.deepcopy(self._objects.get(resource, {}).get(key))

    def all(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """Copies in key order."""
        objects = self._objects.get(resource, {})
        return [
            copy.deepcopy(objects[key])
            for key in sorted(objects)
            if namespace is None or key.namespace == namespace
        ]

    def everything(self) -> Iterable[tuple[Resource, Key, Object]]:
        """Every object of every kind (no copies)."""
        return [(resource, key, obj) for resource, kept in self._objects.items() for key, obj in kept.items()]

    def write(self, resource: Resource, key: Key, obj: Object | None) -> Object | None:
        """Store a copy, or remove with None; sets resourceVersion. Returns what was stored or removed."""
        kept = self._objects.setdefault(resource, {})
        old = kept.get(key)
        self.version += 1
        if obj is None:
            removed = copy.deepcopy(kept.pop(key))
            removed.setdefault("metadata", {})["resourceVersion"] = str(self.version)
            self._record(Change(self.version, resource, key, removed, None))
            return removed
        stored = copy.deepcopy(obj)
        stored.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        kept[key] = stored
        self._record(Change(self.version, resource, key, old, stored))
        return copy.deepcopy(stored)

    def since(self, version: int) -> list[Change]:
        """Writes after `version`. Raises `TooOld`."""
        if version < self._oldest:
            raise TooOld(f"too old resource version: {version} ({self._oldest})")
        return [change for change in self._history if change.version > version]

    def has_since(self, version: int) -> bool:
        """Whether `since` would give anything."""
        return bool(self._history) and self._history[-1].version > version

    async def changed(self) -> None:
        """Wait for the next write."""
        await self._changed.wait()

    def forget_history(self) -> None:
        """As after a compaction: watches must start from now."""
        self._history.clear()
        self.version += 1
        self._oldest = self.version
        self.wake()

    def rewind(self, versions: int) -> None:
        """As after a restore from a backup: the sequence goes back; objects stay as they are."""
        self._history.clear()
        self.version = max(1, self.version - versions)
        self._oldest = self.version

    def _record(self, change: Change) -> None:
        if self._history.maxlen is not None and len(self._history) == self._history.maxlen:
            self._oldest = self._history[0].version
        self._history.append(change)
        self.wake()

    def wake(self) -> None:
        """Let everything that waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()
